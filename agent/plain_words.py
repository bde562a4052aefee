"""Words and codes that everybody uses, and that tell little more than which of them was chosen.

Read by `agent.news` alone: a word of this list is not counted letter by letter.
"""

from __future__ import annotations

import re

_ASKED_WITH = """
about account active address after agenda album all and any answer api april archive article
articles attachment august author available bank before best between bill birthday blog book
booking books bus buy by calendar call cancel car card changed chapter cheap cheapest city class
client closed code comment comments company compare concert contact contacts convert cost
country created current customer daily date day days deadline december default definition
deliver delivery description details device dinner direct discount doc docs document documents
done download draft due economy edit email end english event events expired family feature
february feed file files film filter find first flight flights folder for forecast form format
free friday from full game german group guide hello help high history holiday home hotel hour
hours house how html id image important in inbox index info invoice invoices is issue issues
item items january job json july june kind label language last latest letter limit link list
local location low lunch mail main map march match may me meeting meetings menu message messages
minute minutes monday month movie museum music my name near nearby new newest news next note
notes november number october of office old older on online open opening opinion order orders
outdoor overdue page pages paid park party path payment pdf pending people person phone photo
pictures place places plan post posts presentation price private product program project public
query question questions quick rain ramen read recent recipe recipes reminder repo report
research restaurant result results return review reviews road room route sale saturday schedule
school science score search second section seen sender sent september ship shop show size sort
source sport stable star start state station status story street subject subscription summary
sunday task tasks tax team temperature text the thread thursday ticket tickets time title to
today todo tomorrow tonight top topic total tour town track train travel tree tuesday type
unpaid unread unseen update updated urgent url use user version video view visit wait weather
wednesday week weekend weekly weeks when where which who wiki wind with work world www year
years yesterday you
"""
_CURRENCIES = """
aed ars aud bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr isk jpy krw mad
mxn myr ngn nok nzd php pln ron rub sar sek sgd thb try twd uah usd vnd zar
"""  # ISO 4217
_LANGUAGES = """
ar cs da de el en es et fi fr he hi hr hu it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk zh
"""  # ISO 639-1

PLAIN_WORDS = frozenset(re.findall(r"\w+", _ASKED_WITH + _CURRENCIES + _LANGUAGES))
"""In lower case."""
