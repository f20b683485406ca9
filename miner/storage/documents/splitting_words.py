"""Words that sentence splitting knows: abbreviations, and what sentences begin with."""

# Words whose full stop ends no sentence where a name, a noun or a number may follow; one language
# after the other: en de fr es it pt nl cs pl ru tr, then others.
ABBREVIATIONS = frozenset(
    """
    adm approx ave bros brig capt cf cmdr co col corp cpl dept dr drs esp gen gov hon inc jr lt
    ltd maj messrs mlle mm mme mr mrs ms mt mtro pres prof rep reps rev sen sens sgt sr st ste
    ster vs viz allg anm bes bsp bzgl bzw ca dgl dipl dt ebd eigtl etc evtl ggf hg hl hrsg ing
    inkl insb jh jhd kath lic med mio mrd o.ä phil rer röm sog str tel u.a usw v.a verh vgl z.b
    zzgl zt ztr av boul éd env mgr pl tél tome admón atte avda bco cía dcha depto dña dra dras
    excmo fdo gral ilmo izq lda ldo máx mín pto sra sras srta srs srto ud uds vda avv dott
    dott.ssa ecc geom prof.ssa rag sig sigg sig.ra sig.na sigra exma exmo fl ltda bv dhr evt hr
    jl jhr jkvr mevr mw nl o.a tav vnl zgn zog akad atd bc čp čís doc hod judr kč kpt mj mld
    mudr např nám npor obr odd odst př příp r resp rtm sb sv tj tis tzn tzv ul vyd zkr dyr godz
    inż jw lek mec mln np nt prok pt płk ryc sp św tyg tys tzw ub ur wg wlk woj ww zob адм вв гл
    гос др ед кв корп лит млн млрд муж напр обл оз пер пл пр просп проф св см соч ст стр сущ тов
    трлн тт тыс ул устар bkz cad doç dz gör krş mah müh ör örn öğr sok vb vd yd yrd yy kl m.fl
    m.m bl.a t.ex dvs osv jfr s.k s.a.s obs pí дж ім δρ κα डॉ tp kb
    """.split()
)
# Of these, what ends a sentence as often as not.
MAY_END = frozenset(
    """
    co corp ecc etc inc inkl jr ltd m.m mil mio mld mln mrd np o.ä osv s.a.s sr tj u.a usw v.a
    vb vd zzgl гг млн млрд трлн тыс
    """.split()
)
# The same where a number follows, and words of their own, or likely ends, elsewhere.
BEFORE_NUMBERS = frozenset(
    """
    no nos op pp p vol vols fig figs art kap tab rys ryc pág págs núm nr nº abb abs abschn bd
    bde chap pag pagg séc ch sec рис ст г jan feb febr apr aug sep sept oct okt nov dec dez
    """.split()
)
# Words that begin sentences and are hardly ever names or nouns, in the same order.
STARTERS = frozenset(
    """
    a after also although an and as at because both but by despite during each even every for
    from he her here his how however i if in instead it its meanwhile moreover most my on one
    our she since so some such that the their then there these they this those to under we what
    when where while with without yet you your aber alle allerdings als am auch auf aus außerdem
    bei bis da dabei dafür damit danach dann das dass dazu dem den denn der des deshalb dennoch
    die dies diese dieser dieses doch durch ein eine einem einen einer eines er es für gegen ihr
    ihre im ist jedoch man mit nach nicht noch nun nur ob obwohl sein seine seit sie sind sogar
    sowohl trotz über um und unter viele vom von vor während was weil wenn wer wie wir wo zu zum
    zur zwar zwischen ich alors après au aucun aussi aux avant avec bien car ce cela celui ces
    cet cette chaque comme dans depuis donc dont du elle elles en enfin ensuite entre et grâce
    il ils je jusque la le les leur leurs lors lorsque lui mais malgré même ne nos notre nous ou
    où par parmi pendant plus plusieurs pour pourtant puis quand que qui sa sans selon ses si
    son sur tandis tous tout toutefois toutes un une vers vous además ahora al algunos ambos
    antes aunque cada casi como con contra cuando de del desde después donde dos el ella ellos
    entonces era esa ese eso esta estas este esto estos fue había hasta hay las lo los más
    mientras mucho muchos muy ni no nuestro nunca para pero por porque pues según ser sin sino
    sobre solo su sus también tal tanto todo todos tras una uno y ya yo tenemos alla allo anche
    ancora che chi ci ciò come così dai dal dalla dalle dei della delle di dopo dove due e ecco
    erano fino fra gli ha hanno infatti inoltre io lei loro ma mentre molti nei nel nella non
    nonostante ogni oltre per perché però più poi prima qual quando quasi quella quelle quello
    questa queste questi questo sarà se secondo sempre senza sono sul sulla tra tutti tutto ao
    aos apesar até com depois do durante ela elas ele eles em embora enquanto então essa esse
    foi isso isto já mas muitos na nas nem não nós o os pela pelo pois porém segundo sem seu sua
    sob também uma você aan bij bovendien daar daarna dan dat deze dit door dus een het hij hoe
    hun ik is maar meer met naar niet nog nu of om omdat onder ondanks ons onze ook op over pas
    sinds te tegen tijdens toch toen tot tussen uit van veel vanaf volgens voor waar wanneer
    want wat wel wij ze zij zijn zo zoals zonder zowel aby ale ani až bez bude byl byla bylo
    byly co jak jako jaké jeho jejich jen jestli již jsem jsme jsou k kdo kde kdy kdyby když
    která které který ke mezi mnoho musí nad nebo není od ona oni oproti po pod podle pokud poté
    potom pro proti protože před při s svou ta tak také takže tam tato ten tento teď tím toho
    tohle tom tu tyto u v ve však všechny vy z za zatímco že ama ancak artık ayrıca bazı ben bir
    biz bu buna bunu bunun çok çünkü daha diğer fakat gibi hatta hem hiç için ile ise kendi ki
    neden olarak onlar onun oysa öte pek sadece siz sonra sonuç şimdi şu tüm üstelik veya yani
    yine а без более будет бы был была были было в во вот все всё вы где да даже для до его ее
    её если есть еще ещё же за и из или им их к как когда кроме которые кто ли мы на над нам нас
    не него нет но ну о об однако он она они оно от перед по под после потом потому поэтому при
    про с сам свой себя сейчас со так также там те теперь то тогда тоже только том ты у уже хотя
    чем что чтобы эта эти это этот я bardzo bo być był była było były chociaż czy dla dlatego
    dziś ja jednak jego jej jest jeszcze jeśli już kiedy który mimo nie niektórzy nim ono oraz
    poza ponadto przed przez przy są się także tego też tylko w wiele więc wszyscy wszystko że
    allt att av blev denna det detta dock där efter eller ett från för han hon hur ingen inte
    jag kan med men mer mot många när och på sedan som så till upp ut utan vad var vi vid är
    även af både dette disse før hans har hvad hvor ifølge ikke jeg mange når og også samt selv
    siden til ud ved
    """.split()
)
# Of these, what may stand between an initial and a surname.
PARTICLES = frozenset("al da das de del den der des di do dos du el la las le los van von".split())
# Languages in which a number and a full stop is an ordinal: "am 1. Mai".
ORDINAL_LANGUAGES = frozenset(
    "cs da de et eu fi fo hr hu is lb lt lv nb nn no pl sk sl sr sq tr bs hsb dsb az kk".split()
)
# Letters that are words by themselves, and no initials: "Ik hou van u."
LETTER_WORDS = {"nl": "u", "tr": "o", "ru": "я", "uk": "я", "bg": "я"}
