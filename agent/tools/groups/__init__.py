"""Groups of tools, a module each: files, memory, messages, programs, skills, web and the others.

A tool acts for its caller alone, whatever its arguments say.
"""
