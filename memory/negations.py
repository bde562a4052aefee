"""Whether a text says no, in the languages that people write most. Pure; used by `memory.support`.

It knows words, and endings where a language says no by them. It takes too much for a no rather than
too little: where it is in doubt a note is not kept, and what was said stays searchable.
"""

from __future__ import annotations

import re

from agent.words import fold, words

_WORDS = """
no not never none neither nor cannot without nobody nothing nowhere hardly rarely seldom barely
stopped quit dont doesnt didnt cant wont isnt arent wasnt
nicht nichts kein keine keinen keinem keiner keines nie niemals niemand kaum ohne weder
ne pas jamais aucun aucune sans personne rien
nunca jamás ningún ninguno ninguna nada nadie sin tampoco
non mai niente nessuno nessuna senza
não nem nenhum nenhuma ninguém sem nao
niet geen nooit niemand niets zonder
inte ingen inget inga aldrig ej utan ikke ikkje aldri uten intet
nie nigdy żaden żadna żadnego bez nikt nic
nejsem nemám nechci nikdy není nemůžu neumím nejím nepiju nerad nemam
не нет нету никогда никто ничего нельзя без ни ні немає ніколи ніхто
δεν δε μην μη όχι ποτέ χωρίς κανείς τίποτα
değil yok hiç asla hayır
nu nici niciodată fără nem sem soha nincs sincs ei eivät emme ette ilman
tidak bukan belum jangan nggak không chưa chẳng
नहीं मत ना لا لم لن ليس ليست لست לא אין אף
안 못
"""
_SAYS_NO = frozenset(_WORDS.split())
_ENDS_NO = re.compile(
    r"(?:n't|m[ıiuü]yor\w*|(?<!ta)m[ae]m|m[ae]z(?:s[ıi]n|lar|ler)?|m[ae]d[ıi]\w*)$"
)
"""English, and Turkish: its verbs say no by an ending."""
_BEGINS_NO = re.compile(r"^n['’](?=\w)")
"""French: n'aime."""
_WITHOUT_BLANKS = re.compile(
    "不(?!错|錯)|[没沒未无無]|(?<!特)[别別]|非(?!常)|ません|まへん|ない|なかった|なく|じゃな|ではな"
    "|않|없|아니|못[ 하해한했]|(?:^| )안 (?=[\uac00-\ud7a3])|ไม่"
)
_JUST_NO = re.compile(
    r"^\W*(?:no|nein|non|não|nie|nee|nej|nei|нет|hayır|όχι|nah|nope)\s*[,!.:–-]\s*"
)
"""An answer to what was said before, and no part of the sentence: "No, I like tea"."""


def says_no(text: str) -> bool:
    """Whether anything in it says no."""
    folded = _JUST_NO.sub("", fold(text))
    if _WITHOUT_BLANKS.search(folded):
        return True
    return any(
        word.text in _SAYS_NO or _ENDS_NO.search(word.text) or _BEGINS_NO.search(word.text)
        for word in words(folded)
    )
