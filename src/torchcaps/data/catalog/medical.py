"""Chest X-rays. They serve to compare methods; none of them supports a diagnostic claim."""

from __future__ import annotations

from torchcaps.data.info import Download, FileSet, PublishedFile, SourceInfo

__all__ = ["CHEST_XRAY", "PNEUMONIAMNIST"]

PNEUMONIAMNIST_MD5 = "28209eda62fecd6e6a2d98b1501bb15f"
PNEUMONIAMNIST = SourceInfo(
    name="pneumoniamnist",
    title="PneumoniaMNIST chest X-rays of children",
    image_shape=(1, 28, 28),
    classes=("normal", "pneumonia"),
    train_count=4_708,
    test_count=624,
    licence="CC BY 4.0",
    origin="MedMNIST v2 (Yang et al.), after Kermany et al. 2018",
    split_rule="as published, with its validation set of 524",
    file_sets=(
        FileSet(
            (
                PublishedFile(
                    "pneumoniamnist.npz",
                    PNEUMONIAMNIST_MD5,
                    also_named=("pneumoniamnist_reassembled.npz",),
                    other_md5=(("535d35aad2fe4f223cde6f0235a687ef", "reassembled from copies, not the official file"),),
                ),
            ),
            ("medmnist", "medical", "pneumoniamnist"),
        ),
    ),
    downloads=(
        Download(
            ("https://zenodo.org/records/10519652/files/pneumoniamnist.npz?download=1",),
            "pneumoniamnist.npz",
            PNEUMONIAMNIST_MD5,
        ),
    ),
)

CHEST_XRAY = SourceInfo(
    name="chest-xray",
    title="Chest X-rays with and without COVID-19",
    image_shape=(1, 64, 64),
    classes=("other", "COVID-19"),
    train_count=421,
    test_count=105,
    licence="per picture; the owners ask that no diagnostic claim is made",
    origin="a subset (PA and AP views, 64×64) of covid-chestxray-dataset (Cohen et al. 2020)",
    split_rule="a fifth held out, whole patients, stratified by class, seed 0; rows with finding 'todo' dropped",
    file_sets=(FileSet((PublishedFile("covid_cxr_paap_64.npz"),), ("medical", "chest-xray")),),
)
