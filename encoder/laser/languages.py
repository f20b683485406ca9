"""Which of LASER's published encoders is for a language, and of which files it consists."""

from __future__ import annotations

SHARED = "laser2"  # LASER2, and the name of the subwords that most of LASER3's encoders use, too

# Languages as the names of the files have them: FLORES-200 codes, ISO 639-3 and a script.
LASER3 = (
    "ace_Latn aka_Latn als_Latn amh_Ethi asm_Beng awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl "
    "bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva bjn_Latn bod_Tibt bug_Latn ceb_Latn "
    "cjk_Latn ckb_Arab crh_Latn cym_Latn dik_Latn diq_Latn dyu_Latn dzo_Tibt ewe_Latn fao_Latn "
    "fij_Latn fon_Latn fur_Latn fuv_Latn gaz_Latn gla_Latn gle_Latn grn_Latn guj_Gujr hat_Latn "
    "hau_Latn hin_Deva hne_Deva hye_Armn ibo_Latn ilo_Latn ind_Latn jav_Latn kab_Latn kac_Latn "
    "kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor kaz_Cyrl kbp_Latn kea_Latn khk_Cyrl khm_Khmr "
    "kik_Latn kin_Latn kir_Cyrl kmb_Latn kmr_Latn knc_Arab knc_Latn kon_Latn lao_Laoo lij_Latn "
    "lim_Latn lin_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn luo_Latn lus_Latn mag_Deva "
    "mai_Deva mal_Mlym mar_Deva min_Latn mlt_Latn mni_Beng mos_Latn mri_Latn mya_Mymr npi_Deva "
    "nso_Latn nus_Latn nya_Latn ory_Orya pag_Latn pan_Guru pap_Latn pbt_Arab pes_Arab plt_Latn "
    "prs_Arab quy_Latn run_Latn sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh smo_Latn "
    "sna_Latn snd_Arab som_Latn sot_Latn srd_Latn ssw_Latn sun_Latn swh_Latn szl_Latn tam_Taml "
    "taq_Latn tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi tpi_Latn tsn_Latn tso_Latn "
    "tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab umb_Latn urd_Arab uzn_Latn vec_Latn "
    "war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn zsm_Latn zul_Latn"
).split()
LASER2 = (
    "acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab apc_Arab arb_Arab arb_Latn ars_Arab ary_Arab "
    "arz_Arab bos_Latn bul_Cyrl cat_Latn ces_Latn dan_Latn deu_Latn ell_Grek eng_Latn epo_Latn "
    "est_Latn eus_Latn fin_Latn fra_Latn glg_Latn heb_Hebr hrv_Latn hun_Latn isl_Latn ita_Latn "
    "jpn_Jpan kor_Hang lit_Latn lvs_Latn mkd_Cyrl nld_Latn nob_Latn oci_Latn pol_Latn por_Latn "
    "ron_Latn rus_Cyrl slk_Latn slv_Latn spa_Latn srp_Cyrl swe_Latn ukr_Cyrl vie_Latn yue_Hant "
    "zho_Hans zho_Hant"
).split()
OWN_SUBWORDS = (
    "amh_Ethi ayr_Latn azj_Latn bak_Cyrl bel_Cyrl bod_Tibt ckb_Arab crh_Latn dik_Latn dzo_Tibt "
    "fur_Latn fuv_Latn grn_Latn kab_Latn kac_Latn kaz_Cyrl kir_Cyrl kmr_Latn lij_Latn lim_Latn "
    "lmo_Latn ltg_Latn mya_Mymr pbt_Arab pes_Arab prs_Arab sat_Beng scn_Latn srd_Latn szl_Latn "
    "taq_Latn tgk_Cyrl tir_Ethi tzm_Tfng vec_Latn"
).split()
# ISO 639-1, and ISO 639-3's macrolanguages: the language that the files are named after.
_NAMED = (
    "af afr ak aka sq als am amh ar arb hy hye as asm ay ayr az azj ba bak bm bam be bel bn ben bo "
    "bod bs bos bg bul ca cat cs ces cy cym da dan de deu dz dzo el ell en eng eo epo et est eu "
    "eus ee ewe fo fao fj fij fi fin fr fra ff fuv om gaz gd gla ga gle gl glg gn grn gu guj ht "
    "hat ha hau he heb hi hin hr hrv hu hun ig ibo id ind is isl it ita jv jav ja jpn kn kan ks "
    "kas ka kat kk kaz mn khk km khm ki kik rw kin ky kir ku kmr kr knc kg kon ko kor lo lao li "
    "lim ln lin lt lit lb ltz lg lug lv lvs ml mal mr mar mk mkd mt mlt mi mri my mya nl nld nb "
    "nob no nob ne npi ny nya oc oci or ory pa pan ps pbt fa pes mg plt pl pol pt por qu quy ro "
    "ron rn run ru rus sg sag sa san si sin sk slk sl slv sm smo sn sna sd snd so som st sot es "
    "spa sc srd sr srp ss ssw su sun sv swe sw swh ta tam tt tat te tel tg tgk tl tgl th tha ti "
    "tir tn tsn ts tso tk tuk tr tur tw twi ug uig uk ukr ur urd uz uzn vi vie wo wol xh xho yi "
    "ydd yo yor zh zho ms zsm zu zul "
    "sqi als ara arb aym ayr aze azj din dik ful fuv orm gaz mon khk kur kmr kau knc lav lvs nor "
    "nob nep npi ori ory pus pbt fas pes mlg plt que quy swa swh uzb uzn yid ydd cmn zho msa zsm"
).split()
INDIVIDUAL = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True))


def files_of(language: str) -> list[str]:
    """Return the checkpoint and the subwords of a language's encoder: LASER3's, else LASER2.

    Args:
        language: an ISO 639-1 or 639-3 code, with a script (``kas_Deva``) where there are two.

    Raises:
        ValueError: LASER has no encoder for it, or one for each of its scripts.
    """
    code, _, script = language.partition("_")
    wanted = f"{INDIVIDUAL.get(code, code)}_{script}"  # without a script, what names begin with
    found, shared = (
        [name for name in names if name.startswith(wanted) and (not script or name == wanted)]
        for names in (LASER3, LASER2)
    )
    if len(found) > 1:
        raise ValueError(f"language {language!r} has encoders {' and '.join(found)}; name one")
    if found:
        stem = f"laser3-{found[0]}.v1"
        subwords = stem if found[0] in OWN_SUBWORDS else SHARED
        return [f"{stem}.pt", f"{subwords}.spm", f"{subwords}.cvocab"]
    if shared:
        return [f"{SHARED}.pt", f"{SHARED}.spm"]
    raise ValueError(
        f"LASER has no encoder for the language {language!r}; give an ISO 639 code (de, swh), or "
        "a FLORES one (wol_Latn)"
    )
