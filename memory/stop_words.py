"""Words that stand in nearly every sentence and say nothing about its matter.

Called by `memory.search`. English, and of German, French and Spanish those that are no English
words: a German "die" or "war" is left in, since it would be lost to English.
"""

from __future__ import annotations

_ENGLISH = """
a an the this that these those some any each both few more most other another such same
i me my mine myself we us our ours you your yours he him his she her hers it its they them their
and or but nor so if because as until while than though although
of at by for with about against between into through during before after above below to from up
down in out on off over under again further then once here there
am is are was were be been being have has had having do does did doing done
can could shall should will would may might must ought
what which who whom whose when where why how
not no only own too very just also now ever
please s t d ll re ve m don isn aren wasn weren hasn haven hadn doesn didn won wouldn couldn shouldn
"""
_OTHERS = """
der das den dem des ein eine einen einem einer und oder aber wenn weil dass ich mich mir mein meine
du dich dir dein deine er sie wir uns unser ihr euch ist sind bin bist sein seine hat habe haben
wird werden kann auf mit von zu zum zur bei für über nicht auch noch schon nur bitte wie wo wann wer
le la les un une des et ou mais je tu il elle nous vous ils elles mon ma mes ton ta tes ses
est suis sont dans avec sur que qui quoi ne pas plus
el los las una unos unas y pero yo tú él ella nosotros mi tu su es soy son en con por para que
quién qué cómo cuándo dónde
"""
_ALSO_ENGLISH = {"son", "mine", "des", "pas", "plus", "ton", "sur", "con", "er", "la", "mi", "bin"}

STOP_WORDS = frozenset(_ENGLISH.split()) | (frozenset(_OTHERS.split()) - _ALSO_ENGLISH)
