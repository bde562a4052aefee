"""The prompt, assembled from layers: persona, skills, memories, chat, summary, history.

Layers are bounded in size, and their order keeps the provider's prefix cache warm.
"""
