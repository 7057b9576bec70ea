"""What the actors send each other, one module per receiver.

Every message about one process carries (component_id, generation), and its receiver drops what
belongs to an older one. Timers are messages too.
"""
