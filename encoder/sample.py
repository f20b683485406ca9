"""Sentences that a precision is tried on; of many languages, scripts and lengths."""

SAMPLE = (
    "Yes.",
    "Where is the station?",
    "The committee will meet again on 14 March to discuss the budget for next year.",
    "Prices rose by 2.4 % in the second quarter, more than analysts had expected, while wages, "
    "which had grown for three years in a row, stayed where they were.",
    "Wir haben gestern lange auf den Bus gewartet.",
    "Die Feuerwehr rückte am Sonntagabend mit vier Wagen aus, weil in einer Lagerhalle am Hafen "
    "Rauch gemeldet worden war; gebrannt hatte dort aber nichts.",
    "Le marché est ouvert tous les matins, sauf le lundi.",
    "Il ne faut pas oublier que cette décision, prise sans consulter les habitants, leur coûtera "
    "cher pendant des années.",
    "¿Cuánto cuesta un billete de ida y vuelta a Sevilla?",
    "La niña dibujó una casa con dos ventanas y un árbol muy grande.",
    "O rio transbordou três vezes desde o início do ano.",
    "Quando torni a casa, ricordati di chiudere la finestra della cucina.",
    "De brug is tot half september afgesloten voor al het verkeer.",
    "Vlak má dvacet minut zpoždění.",
    "Pociąg do Krakowa odjeżdża z toru trzeciego o siódmej rano.",
    "Annem her sabah bahçede çay içer.",
    "Kissa nukkuu ikkunalaudalla, kun ulkona sataa lunta.",
    "A könyvtár szombaton csak délig van nyitva.",
    "Вчера вечером в городе на два часа отключили свет.",
    "Учёные измерили температуру воды на глубине трёх километров и сравнили её с данными, "
    "собранными полвека назад.",
    "Το μουσείο κλείνει στις πέντε το απόγευμα.",
    "وصلت السفينة إلى الميناء صباح اليوم.",
    "הילדים משחקים בחצר אחרי בית הספר.",
    "मेरे भाई ने कल एक नई साइकिल ख़रीदी।",
    "今天下午可能会下雨，请带上雨伞。",
    "この店は水曜日が休みです。",
    "우리는 내일 아침 일찍 산에 갈 거예요.",
    "Con mèo đang ngủ dưới gầm bàn.",
    "Kitabu hiki kina hadithi kumi na mbili.",
    "Sekolah itu dibangun kembali setelah gempa bumi.",
)
