"""Names of countries and larger regions, folded: who lives in one may live in a town of it too.

Called by `memory.facts.statements`.
"""

from __future__ import annotations

_NAMES = """
afghanistan, albania, algeria, argentina, armenia, australia, austria, azerbaijan, bangladesh,
belarus, belgium, bolivia, bosnia, brazil, bulgaria, cambodia, cameroon, canada, chile, china,
colombia, costa rica, croatia, cuba, cyprus, czechia, czech republic, denmark, ecuador, egypt,
england, estonia, ethiopia, finland, france, georgia, germany, ghana, great britain, greece,
greenland, guatemala, hungary, iceland, india, indonesia, iran, iraq, ireland, israel, italy,
jamaica, japan, jordan, kazakhstan, kenya, korea, south korea, north korea, kosovo, kuwait,
latvia, lebanon, libya, liechtenstein, lithuania, luxembourg, malaysia, malta, mexico, moldova,
monaco, mongolia, montenegro, morocco, myanmar, namibia, nepal, netherlands, holland,
new zealand, nicaragua, nigeria, north macedonia, northern ireland, norway, oman, pakistan,
palestine, panama, paraguay, peru, philippines, poland, portugal, qatar, romania, russia,
rwanda, saudi arabia, scotland, senegal, serbia, singapore, slovakia, slovenia, south africa,
spain, sri lanka, sudan, sweden, switzerland, syria, taiwan, tanzania, thailand, tunisia,
turkey, türkiye, uganda, ukraine, united arab emirates, uae, united kingdom, uk, united states,
usa, us, america, uruguay, uzbekistan, venezuela, vietnam, wales, yemen, zambia, zimbabwe,
europe, asia, africa, north america, south america, latin america, scandinavia, the balkans,
california, texas, florida, new england, bavaria, tyrol, catalonia, tuscany, provence, brittany,
bayern, österreich, deutschland, schweiz, italia, españa, norge, sverige, danmark, suomi
"""

COUNTRIES = frozenset(name.strip() for name in _NAMES.replace("\n", " ").split(","))
