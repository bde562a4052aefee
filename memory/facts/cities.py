"""Names of large cities and towns, folded, none of which lies within another one.

Called by `memory.facts.statements`: who lives in one of them does not live in another one. Of a
place that is not named here nobody can tell whether it is a part of a town, or the region around
it.
"""

from __future__ import annotations

_NAMES = """
aachen, aalborg, aarhus, aberdeen, abu dhabi, accra, adelaide, ahmedabad, albany, albuquerque,
aleppo, algiers, alicante, almaty, amman, amsterdam, anchorage, ankara, antalya, antwerp, athens,
atlanta, auckland, augsburg, austin, baghdad, baku, baltimore, bangalore, bengaluru, bangkok,
barcelona, bari, basel, beijing, beirut, belfast, belgrade, bergen, berlin, bern, bielefeld,
bilbao, birmingham, bochum, bogotá, bologna, bonn, bordeaux, boston, braga, brasília, bratislava,
bremen, brescia, brighton, brisbane, bristol, brno, bruges, brussels, bucharest, budapest,
buenos aires, buffalo, bursa, busan, cairo, calgary, cali, cambridge, canberra, cape town, caracas,
cardiff, casablanca, catania, charlotte, chennai, chicago, chongqing, christchurch, cincinnati,
cleveland, cologne, colombo, columbus, copenhagen, córdoba, cork, coventry, curitiba, da nang,
daegu, dakar, dallas, damascus, debrecen, delhi, denver, derby, detroit, dhaka, dijon, dortmund,
dresden, dubai, dublin, dubrovnik, dundee, dunedin, durban, düsseldorf, edinburgh, edmonton,
eindhoven, erfurt, essen, exeter, florence, frankfurt, freiburg, fukuoka, galway, gaziantep, gdańsk,
geneva, genoa, ghent, gijón, glasgow, gothenburg, göttingen, granada, graz, grenoble, groningen,
guadalajara, guangzhou, guatemala city, guayaquil, haifa, halifax, hamburg, hangzhou,
hannover, hanoi, harare, havana, heidelberg, helsinki, hiroshima, ho chi minh city, hobart,
honolulu, houston, hyderabad, ibadan, indianapolis, innsbruck, istanbul, izmir, jacksonville,
jaipur, jakarta, jeddah, jerusalem, johannesburg, kampala, kansas city, karachi, karlsruhe,
kassel, kathmandu, kaunas, kazan, kharkiv, khartoum, kiel, kigali, kinshasa, klagenfurt,
kobe, kolkata, košice, kraków, krakow, kuala lumpur, kuwait city, kyiv, kyoto, lagos, lahore,
las vegas, lausanne, leeds, leicester, leiden, leipzig, liège, lille, lima, limerick, linz, lisbon,
liverpool, ljubljana, london, los angeles, louisville, luanda, lübeck, lucerne, luxor,
lviv, lyon, maastricht, madison, madrid, magdeburg, mainz, málaga, malmö, manaus, manchester,
manila, mannheim, maribor, marrakesh, marseille, medellín, melbourne, memphis, mexico city, miami,
milan, milwaukee, minneapolis, minsk, mombasa, monterrey, montevideo, montpellier, montreal,
montréal, moscow, mumbai, munich, münster, murcia, nagoya, nairobi, nantes, naples, nashville,
new orleans, new york, new york city, newcastle, nicosia, norwich, nottingham,
nuremberg, odense, odesa, oklahoma city, omaha, orlando, osaka, oslo, ostrava, ottawa, oulu,
oxford, padua, palermo, panama city, paris, patras, perth, perugia, philadelphia, phnom penh,
phoenix, pisa, pittsburgh, plovdiv, plymouth, plzeň, podgorica, portland, porto, porto alegre,
portsmouth, poznań, prague, pretoria, pristina, pune, quebec, quito, rabat, recife, reims,
rennes, reykjavik, riga, rijeka, rio de janeiro, riyadh, rome, rosario, rostock, rotterdam, rouen,
saarbrücken, sacramento, salt lake city, salzburg, san antonio, san diego, san francisco,
san josé, san jose, san juan, santiago, santo domingo, são paulo, sapporo, sarajevo, seattle,
sendai, seoul, seville, shanghai, sheffield, shenzhen, skopje, sofia, southampton,
st gallen, stavanger, stockholm, strasbourg, stuttgart, surabaya, sydney, szczecin, szeged, taipei,
tallinn, tampere, tartu, tashkent, tbilisi, tehran, tel aviv, thessaloniki, tirana, tokyo, toledo,
toronto, toulouse, trieste, tromsø, trondheim, tucson, tunis, turin, turku, ulaanbaatar, ulm,
uppsala, utrecht, valencia, valparaíso, vancouver, venice, verona, vienna, vilnius,
warsaw, wellington, wiesbaden, winnipeg, winterthur, wrocław, würzburg, york, yerevan,
yokohama, zagreb, zaragoza, zürich, zurich
"""

CITIES = frozenset(name.strip() for name in _NAMES.replace("\n", " ").split(","))
