"""How fast: the start, a turn, a turn with a tool, many chats at once, and a long conversation."""

from collections import defaultdict

from tests.bench.bench import ALL, Bench, medians, p95
from tests.bench.figures import PRODUCT, Figure
from tests.bench.stage import NOTES, OWNER, Stage, Talk

THINK_S = 0.03
"""A person's pause between turns: the bot has settled, and waits."""

TOOL_TEXT = f'!call read_file {{"path": "{NOTES}"}}\n!say read {{mark}}'
MODEL_S = 0.2
LONG_TURNS = 1000
LONG_WINDOW = 20
EARLY_TURNS = 20


def measure_start(bench: Bench) -> None:
    """A home that was used before; a message waits at the platform."""
    polling: dict[str, list[float]] = defaultdict(list)
    replied: dict[str, list[float]] = defaultdict(list)
    idle: dict[str, float] = {}
    threads: dict[str, float] = {}
    for stage in bench.in_turns(1):
        stage.talk(chats=1, rounds=1)
    for run in range(bench.rounds(5)):
        for name in ALL:
            bench.say(f"start {run + 1}, {name}")
            stage = bench.stage(name)
            stage.stop()
            bench.settle()
            to_poll, to_reply = _start_with_message(stage)
            polling[name].append(to_poll)
            replied[name].append(to_reply)
    for name in ALL:
        stage = bench.stage(name)
        stage.stop()
        bot = stage.ready()
        bench.settle()
        idle[name], threads[name] = bot.rss_mb(), bot.threads()
    bench.add(Figure(name="start → polling", unit="s", values=medians(polling), must=0.5, digits=2))
    bench.add(
        Figure(name="start → first reply", unit="s", values=medians(replied), must=0.7, digits=2)
    )
    bench.add(Figure(name="idle RSS", unit="MB", values=idle, must=80))
    bench.add(Figure(name="idle threads", unit="", values=threads, digits=0))


def _start_with_message(stage: Stage) -> tuple[float, float]:
    telegram = stage.telegram
    before, sent = telegram.received(), telegram.count("sendMessage")
    telegram.order("message", chat_id=OWNER, text="hello")
    bot = stage.start()
    telegram.wait("sendMessage", more_than=sent)
    polls = telegram.order("log", method="getUpdates", since=before)
    sends = telegram.order("log", method="sendMessage", since=before)
    return polls[0]["at"] - bot.began_at, sends[0]["at"] - bot.began_at


def measure_plain(bench: Bench) -> None:
    """One person, one chat, a model that answers at once."""
    _overheads(bench, "plain turn", must=12, text="{mark} how are you today?")


def measure_tool(bench: Bench) -> None:
    """The same with a file read in between: two requests to the model."""
    _overheads(bench, "turn with one tool", must=18, text=TOOL_TEXT)


def _overheads(bench: Bench, name: str, *, must: float, text: str) -> None:
    found: dict[str, list[float]] = defaultdict(list)
    wrong = 0
    for stage in bench.in_turns(bench.rounds(5)):
        bench.say(f"{name}, {stage.name}")
        stage.talk(chats=1, rounds=3, think_s=THINK_S, text=text)
        talk = stage.talk(chats=1, rounds=10, think_s=THINK_S, text=text)
        found[stage.name] += [1000 * wait for wait in talk.waits_s]
        wrong += talk.wrong if stage.name == PRODUCT else 0
    values = medians(found)
    note = f"p95 {p95(found[PRODUCT]):.1f}" + (f", {wrong} WRONG" if wrong else "")
    bench.add(Figure(name=f"{name}, overhead", unit="ms", values=values, must=must, note=note))


def measure_cpu(bench: Bench) -> None:
    """Of the bot's process alone; the kernel's part included."""
    found: dict[str, list[float]] = defaultdict(list)
    for stage in bench.in_turns(bench.rounds(4)):
        bench.say(f"CPU of plain turns, {stage.name}")
        bot = stage.ready()
        before = bot.cpu_s()
        stage.talk(chats=1, rounds=50, think_s=0.005)
        found[stage.name].append(1000 * (bot.cpu_s() - before) / 50)
    bench.add(Figure(name="CPU per plain turn", unit="ms", values=medians(found), must=12))


def measure_load(bench: Bench) -> None:
    """People who write again as soon as they are answered; the model takes 200 ms."""
    _crowd(bench, chats=50, rounds=6, turns_per_s=80, p95_s=0.8)
    _crowd(bench, chats=200, rounds=4, turns_per_s=100, p95_s=2.5)


def _crowd(bench: Bench, *, chats: int, rounds: int, turns_per_s: float, p95_s: float) -> None:
    rates: dict[str, list[float]] = defaultdict(list)
    waits: dict[str, list[float]] = defaultdict(list)
    wrong: dict[str, float] = dict.fromkeys(ALL, 0)
    for stage in bench.in_turns(bench.rounds(3)):
        bench.say(f"{chats} chats, {stage.name}")
        talk = _with_slow_model(stage, chats=chats, rounds=rounds)
        rates[stage.name].append(len(talk.turns) / talk.seconds)
        waits[stage.name].append(p95(talk.waits_s))
        wrong[stage.name] += talk.wrong
    name = f"{chats} chats, 200-ms model"
    values = medians(rates)
    bench.add(Figure(name=name, unit="turns/s", values=values, must=turns_per_s, at_least=True))
    bench.add(Figure(name="  p95", unit="s", values=medians(waits), must=p95_s, digits=2))
    lost = "without their own one answer"
    bench.add(Figure(name="  lost", unit="turns", values=wrong, must=0, digits=0, note=lost))


def _with_slow_model(stage: Stage, *, chats: int, rounds: int) -> Talk:
    stage.model.order("set", delay_s=MODEL_S)
    try:
        return stage.talk(chats=chats, rounds=rounds, first_chat=chats * 100)
    finally:
        stage.model.order("set", delay_s=0)


def measure_long(bench: Bench) -> None:
    """One chat of a thousand turns, early and late."""
    turns = LONG_TURNS // 5 if bench.quick else LONG_TURNS
    early: dict[str, float] = {}
    late: dict[str, float] = {}
    for stage in bench.in_turns(1):
        bench.say(f"{turns} turns of one chat, {stage.name}")
        chat = 9001
        stage.talk(chats=1, rounds=2, first_chat=chat)
        early[stage.name] = _window(bench, stage, chat, EARLY_TURNS - 2)
        stage.talk(chats=1, rounds=turns - EARLY_TURNS - LONG_WINDOW // 2, first_chat=chat)
        late[stage.name] = _window(bench, stage, chat, LONG_WINDOW)
    ratio = late[PRODUCT] / early[PRODUCT]
    bench.add(Figure(name="turn 10 of one chat, overhead", unit="ms", values=early))
    bench.add(
        Figure(
            name=f"turn {turns:,} of one chat, overhead",
            unit="ms",
            values=late,
            must=10,
            note=f"{ratio:.1f} × turn 10",
        )
    )


def _window(bench: Bench, stage: Stage, chat: int, rounds: int) -> float:
    bench.settle()
    return stage.talk(chats=1, rounds=rounds, think_s=THINK_S, first_chat=chat).median_ms
