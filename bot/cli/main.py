"""The root of the command line: `hearthbot`, and what stands behind it."""

from __future__ import annotations

from bot.cli import access, doctor, init, mcp, memory, model, prompt, run, sessions, usage
from bot.cli.schedule import commands as schedule
from bot.cli.skills import commands as skills
from bot.cli.terminal import chat, lab

app = run.new_app()
app.command("chat")(chat.chat)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("status")(run.status)
app.command("lab")(lab.lab)
app.command("usage")(usage.usage)
app.add_typer(access.app, name="access")
app.add_typer(mcp.app, name="mcp")
app.add_typer(memory.app, name="memory")
app.add_typer(model.app, name="model")
app.add_typer(prompt.app, name="prompt")
app.add_typer(schedule.app, name="schedule")
app.add_typer(sessions.app, name="sessions")
app.add_typer(skills.app, name="skills")
