"""`engine = "ray"`: Ray knows the machines, reserves room on them and asks its autoscaler for more.

    Coordinator ─▶ RayEngine ─ JSON lines over ray-link.sock ─▶ link (a process of its own) ─▶ Ray

The supervisor never imports `ray`: a driver of Ray is ended by Ray's own code when the head is away for a
minute, and a question to Ray may hang. So a link process does, which Rekindle supervises like any worker, as
it does with `ray start`. While link or head are away, nothing stops and nothing moves.
"""
