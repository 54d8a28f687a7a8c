#!/usr/bin/env python3
"""Trains a small PyTorch network on Fashion-MNIST, one trial after another, and lets Jizi choose its parameters.

    by hand:  python3 examples/fashion_mnist_python/train.py --lr 0.05 --epochs 2
    a sweep:  build/release/jizi run examples/fashion_mnist_python/sweep.yaml
Needs torch and jizi in its Python: pip install torch ./trial-helper/python
"""
import argparse
import gzip
import math
import pathlib
import struct

import jizi
import torch
from torch import nn
from torch.nn import functional

SIDE, CLASSES = 28, 10
VALIDATION = 6000  # The last training images: the test set stays untouched by tuning.


def load(folder, stem):
    """Images n x 1 x 28 x 28 in [-1, 1], and labels n, of an IDX pair."""
    with gzip.open(folder / f"{stem}-images-idx3-ubyte.gz") as file:
        magic, count, height, width = struct.unpack(">4I", file.read(16))
        if (magic, height, width) != (2051, SIDE, SIDE):
            raise ValueError(f"{stem} in {folder} holds no 28 x 28 images")
        images = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).reshape(count, 1, SIDE, SIDE)
    with gzip.open(folder / f"{stem}-labels-idx1-ubyte.gz") as file:
        file.read(8)
        labels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    return images.float().div_(127.5).sub_(1), labels


def make_model(width):
    quarter = SIDE // 4  # After two poolings.
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(2 * width * quarter * quarter, 8 * width), nn.ReLU(), nn.Linear(8 * width, CLASSES))


def train_epoch(model, optimiser, images, labels, batch_size, order):
    """Mean loss; NaN as soon as a batch's is not finite."""
    model.train()
    total = 0.0
    for batch in order.split(batch_size):
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(images[batch]), labels[batch])
        if not math.isfinite(loss.item()):
            return math.nan
        loss.backward()
        optimiser.step()
        total += loss.item() * len(batch)
    return total / len(order)


@torch.no_grad()
def evaluate(model, images, labels):
    """(loss, accuracy)"""
    model.eval()
    logits = torch.cat([model(part) for part in images.split(1000)])
    return functional.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


def run(trial, images, labels, seed):
    params = trial.params
    held_out = len(labels) - VALIDATION
    count = min(params["train_examples"], held_out)
    torch.manual_seed(seed)
    model = make_model(params["width"])
    optimiser = torch.optim.SGD(model.parameters(), lr=params["lr"], momentum=params["momentum"], weight_decay=params["weight_decay"])
    if trial.warm_start:
        state = torch.load(trial.warm_start)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
    trial.plan_steps(params["epochs"])
    for epoch in range(trial.start_step + 1, params["epochs"] + 1):
        # The order depends on the epoch alone, so that a run that goes on sees the same batches.
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
        loss = train_epoch(model, optimiser, images[:count], labels[:count], params["batch_size"], order)
        if not math.isfinite(loss):
            raise jizi.Infeasible(f"the loss became NaN in epoch {epoch}")
        val_loss, accuracy = evaluate(model, images[held_out:], labels[held_out:])
        print(f"epoch {epoch}: loss {loss:.4f}, validation loss {val_loss:.4f}, validation accuracy {accuracy:.4f}", flush=True)
        result = trial.report(epoch, val_accuracy=accuracy, val_loss=val_loss, loss=loss)
        if trial.id:  # By hand nobody would take it up.
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
            trial.checkpoint(epoch, lambda path: torch.save(state, path))
        if result.should_stop:
            return


def main():
    parser = argparse.ArgumentParser(description="Started by jizi, the study's parameters win.")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight_decay", type=float, default=1e-4)
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--width", type=int, default=8, help="channels of the first convolution")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--train_examples", type=int, default=54_000, help="of 60,000; the last 6,000 validate")
    parser.add_argument("--seed", type=int, default=1)
    by_hand = vars(parser.parse_args())
    data, seed = by_hand.pop("data"), by_hand.pop("seed")

    # Threads spin: more of them than free cores make an epoch several times slower.
    torch.set_num_threads(1)
    images, labels = load(data, "train")
    for trial in jizi.trials(defaults=by_hand):
        with trial:  # Where a trial diverges, the next one is taken.
            run(trial, images, labels, seed)


main()
