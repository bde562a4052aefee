"""`hearthbot skills`: what the bot knows how to do, and the owner's decisions about it.

Nothing is approved here that was not shown before.
"""
