%% A supervisor of OTP with a port for every slot: erl -s bench_supervisor main -extra WORKER ARENA SLOTS
-module(bench_supervisor).
-behaviour(supervisor).
-export([main/0, init/1, start_worker/3, run/3]).

main() ->
    [Worker, Arena, Slots] = init:get_plain_arguments(),
    process_flag(trap_exit, true),
    {ok, _} = supervisor:start_link(?MODULE, {Worker, Arena, list_to_integer(Slots)}),
    receive stop -> ok end.

init({Worker, Arena, Slots}) ->
    Flags = #{strategy => one_for_one, intensity => 10000000, period => 1},
    Children = [#{id => Slot, start => {?MODULE, start_worker, [Worker, Arena, Slot]}, shutdown => brutal_kill}
                || Slot <- lists:seq(0, Slots - 1)],
    {ok, {Flags, Children}}.

start_worker(Worker, Arena, Slot) ->
    {ok, proc_lib:spawn_link(?MODULE, run, [Worker, Arena, Slot])}.

run(Worker, Arena, Slot) ->
    Port = open_port({spawn_executable, Worker}, [{args, [Arena, integer_to_list(Slot)]}, exit_status]),
    receive {Port, {exit_status, _}} -> exit(normal) end.
