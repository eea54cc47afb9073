"""Every script and spelling, through a whole search: what `grep` finds is found first."""

import random
from typing import get_args

import pytest

from notebook_sync.search.embed import StaticEmbedder
from notebook_sync.search.query import Mode, Searcher
from notebook_sync.store.index import Index
from tests.search.conftest import ANALYZER, add, fact

STATIC = StaticEmbedder()
SEARCHES: list[tuple[Mode, StaticEmbedder | None]] = [
    *((mode, STATIC) for mode in get_args(Mode) if mode != "semantic"),
    ("hybrid", None),
]
# Subjects, verbs and objects of sentences that say much the same; and what only one note each says.
LOGS = {
    "Chinese": (
        "今天早上 昨天下午 上个星期 在大雾中 按照规定",
        "渡船 码头 灯塔 办公室 售票处 仓库 船员 乘客",
        "检查了 更换了 登记了 讨论了 取消了 推迟了",
        "缆绳 发动机 时刻表 票价 救生衣 油漆 钥匙",
        {
            "新的声呐设备放在三号仓库": "声呐 声呐设备",
            "请把护照复印件交给码头": "护照 护照复印件",
            "老板娘对花生过敏": "花生 老板娘",
        },
    ),
    "Japanese": (
        "今朝 昨日の午後 先週 霧の中で 規則により",
        "フェリー 桟橋 灯台 事務所 倉庫 船員",
        "を点検した を交換した を登録した を延期した",
        "ロープ エンジン 時刻表 運賃 救命胴衣",
        {"新しい魚群探知機は三番倉庫にある": "魚群探知機 探知機", "旅券の写しを渡してください": "旅券 旅券の写し"},
    ),
    "Korean": (
        "오늘아침 어제오후 지난주 안개속에서 규정에따라",
        "여객선이 부두가 등대가 사무실이 창고가",
        "점검했다 교체했다 등록했다 연기했다",
        "밧줄을 엔진을 시간표를 요금을",
        {"새음파탐지기는 삼번창고에있다": "탐지기 음파탐지기", "여권사본을 주십시오": "여권 여권사본"},
    ),
    "Thai": (
        "เช้านี้ บ่ายวาน สัปดาห์ก่อน ในหมอก ตามกฎ",
        "เรือข้ามฟาก ท่าเรือ ประภาคาร สำนักงาน โกดัง",
        "ตรวจสอบ เปลี่ยน ลงทะเบียน เลื่อน",
        "เชือก เครื่องยนต์ ตารางเวลา ค่าโดยสาร",
        {"โซนาร์ใหม่อยู่ที่โกดังสาม": "โซนาร์", "กรุณาส่งสำเนาหนังสือเดินทาง": "หนังสือเดินทาง สำเนา"},
    ),
}


def sentences(language: str, rng: random.Random, count: int) -> str:
    *parts, _ = LOGS[language]
    words = [str(part).split() for part in parts]
    gap = " " if language == "Korean" else ""
    return "。".join(gap.join(map(rng.choice, words)) for _ in range(count))


@pytest.mark.parametrize(("mode", "embedder"), SEARCHES, ids=["hybrid", "keyword", "without vectors"])
@pytest.mark.parametrize("language", LOGS)
def test_a_term_that_one_note_has_is_found_first(
    index: Index, language: str, mode: Mode, embedder: StaticEmbedder | None
) -> None:
    rng = random.Random(7)  # the same logs in every run
    special = LOGS[language][-1]
    assert isinstance(special, dict)
    notes = {f"pages/n{at:02}.md": f"# Log {at}\n\n{sentences(language, rng, 40)}。\n" for at in range(30)}
    for at, sentence in enumerate(special):
        notes[f"pages/special{at}.md"] = (
            f"# Log 9{at}\n\n{sentences(language, rng, 20)}。{sentence}。{sentences(language, rng, 20)}。\n"
        )
    add(index, notes)
    searcher = Searcher(index, ANALYZER, embedder)
    for at, terms in enumerate(special.values()):
        for term in terms.split():
            hit = searcher.search(term, mode=mode, limit=3).hits[0]
            quoted = hit.snippet.text if hit.snippet else ""
            assert (term, hit.id, term in quoted) == (term, f"pages/special{at}", True)


FACTS = """渡船早上九点开 票价十二克朗 码头在冬天结冰 灯塔每五年油漆一次 仓库钥匙在奥马尔那里 护照复印件要交给港务局
星期天没有夜班 缆绳三月更换 无线电频道是十六 船长对花生过敏 售票处中午休息 浮标由志愿者维修 发动机用柴油"""


@pytest.mark.parametrize("embedder", [STATIC, None])
@pytest.mark.parametrize(
    ("term", "expected"),
    [("护照", "护照复印件要交给港务局"), ("柴油", "发动机用柴油"), ("钥匙", "仓库钥匙在奥马尔那里")],
)
def test_facts_in_a_script_without_spaces_are_found_first(
    index: Index, term: str, expected: str, embedder: StaticEmbedder | None
) -> None:
    index.facts.put([fact(content, content) for content in FACTS.split()])
    assert Searcher(index, ANALYZER, embedder).search(term, collection="facts").hits[0].id == expected


SPELLINGS = {
    "ar": ("اجتماع الفريق يوم الثلاثاء. مُحَمَّد كتب التقرير", "محمد"),
    "code": ("Call get_user_name() and getUserName; see C++ and C#, ERR_CONN_RESET, TICKET-482, 1,000 items", "1000"),
    "de": ("Die Versicherung zahlt. Straße und Müller.", "Strasse Mueller Müller muller"),
    "emo": ("Ship it 🚀 and party 🎉. Flag 🇨🇭", "🚀 🇨🇭"),
    "fr": ("L'été prochain, l'hôtel d'Aurélie ouvre. cœur naïve façade", "coeur ete"),
    "he": ("הפגישה נדחתה ליום שלישי. שָׁלוֹם", "שלום"),
    "lig": ("The ﬁrst ofﬁce ﬂoor; ½ cup; x²; ＦＵＬＬＷＩＤＴＨ", "first office FULLWIDTH"),
    "ru": ("Ёлка стоит в углу. Отчёт готов.", "елка отчет"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_word_in_another_spelling_finds_its_note_first(index: Index, name: str) -> None:
    add(index, {f"pages/{name}.md": f"{text}\n" for name, (text, _) in SPELLINGS.items()})
    searcher = Searcher(index, ANALYZER, STATIC)
    for mode in ("keyword", "hybrid"):
        for query in SPELLINGS[name][1].split():
            assert [hit.id for hit in searcher.search(query, mode=mode).hits][:1] == [f"pages/{name}"], query


def test_a_pasted_picture_hides_nothing_and_is_not_quoted(index: Index) -> None:
    picture = "".join(random.Random(1).choices("ABCDEFGHabcdefgh0123456789+/", k=400_000))
    add(
        index,
        {
            "pages/picture.md": "# Picture\n\nBefore the lantern.\n\n"
            f"![scan](data:image/png;base64,{picture})\n\nAfter it: the keeper lives in house nine.\n"
        },
    )
    searcher = Searcher(index, ANALYZER, STATIC)
    for query, quote in (("lantern", "Before the lantern."), ("keeper house nine", "the keeper lives in house nine.")):
        for mode in ("keyword", "hybrid"):
            snippet = searcher.search(query, mode=mode).hits[0].snippet
            quoted = snippet.text if snippet else ""
            assert (quote in quoted, "base64" in quoted) == (True, False)
    row = index.documents.one("pages/picture") or pytest.fail("none")
    assert len(row["terms"]) < 200
