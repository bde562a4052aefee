"""Platforms: what a channel can do, and what several of them share.

A channel carries messages and decides nothing about people or turns.
"""
