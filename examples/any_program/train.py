#!/usr/bin/env python3
"""Any Python program: argparse in, lines that start with "jizi " out. It imports nothing of jizi.

Naive Bayes on Fashion-MNIST with the standard library alone: each class has a mean and a spread for each of 49 coarse pixels.
    by hand: examples/any_program/train.py --smoothing=0.02 --power=0.5
"""
import argparse
import gzip
import json
import math
import os
import pathlib
import sys

DATA = pathlib.Path(os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))
CLASSES, SIDE, COARSE = 10, 28, 7


def load(first, count):
    """Labels, and images as 49 means of 4 x 4 pixels in [0, 1]."""
    with gzip.open(DATA / "train-labels-idx1-ubyte.gz") as file:
        file.read(8 + first)
        labels = file.read(count)
    with gzip.open(DATA / "train-images-idx3-ubyte.gz") as file:
        file.read(16 + first * SIDE * SIDE)
        pixels = file.read(count * SIDE * SIDE)
    images = []
    for n in range(count):
        sums = [0] * (COARSE * COARSE)
        base = n * SIDE * SIDE
        for y in range(SIDE):
            for x in range(0, SIDE, 4):
                at = base + y * SIDE + x
                sums[y // 4 * COARSE + x // 4] += sum(pixels[at : at + 4])
        images.append([s / (16 * 255) for s in sums])
    return labels, images


class NaiveBayes:
    def __init__(self, smoothing, shared):
        self.smoothing = smoothing  # Added to each variance, against pixels that never change.
        self.shared = shared  # One variance a pixel for all classes.
        self.count = [0] * CLASSES
        self.sum = [[0.0] * 49 for _ in range(CLASSES)]
        self.squares = [[0.0] * 49 for _ in range(CLASSES)]

    def learn(self, label, image):
        self.count[label] += 1
        for i, value in enumerate(image):
            self.sum[label][i] += value
            self.squares[label][i] += value * value

    def fitted(self):
        """(mean, variance, constant) of each class."""
        means = [[s / max(n, 1) for s in sums] for n, sums in zip(self.count, self.sum)]
        variances = [[q / max(n, 1) - m * m + self.smoothing for q, m in zip(squares, mean)]
                     for n, squares, mean in zip(self.count, self.squares, means)]
        if self.shared:
            total = sum(self.count)
            pooled = [sum(n * v[i] for n, v in zip(self.count, variances)) / total for i in range(49)]
            variances = [pooled] * CLASSES
        return [(m, v, -0.5 * sum(map(math.log, v)) + math.log(max(n, 1))) for n, m, v in zip(self.count, means, variances)]


def accuracy(model, labels, images):
    classes = model.fitted()
    right = 0
    for label, image in zip(labels, images):
        scores = [c - 0.5 * sum((x - m) ** 2 / v for x, m, v in zip(image, mean, variance)) for mean, variance, c in classes]
        right += max(range(CLASSES), key=scores.__getitem__) == label
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoothing", type=float, default=0.01)
    parser.add_argument("--power", type=float, default=1.0, help="pixels are raised to it")
    parser.add_argument("--shared", type=lambda word: word == "True", default=False, help="True or False")
    parser.add_argument("--examples", type=int, default=1200)
    settings = parser.parse_args()
    if settings.smoothing <= 0:
        sys.exit("train.py: a variance of 0 divides by zero: give --smoothing above 0")

    labels, images = load(0, settings.examples + 300)
    images = [[value**settings.power for value in image] for image in images]
    model = NaiveBayes(settings.smoothing, settings.shared)
    part = settings.examples // 4
    for step in range(1, 5):
        for n in range((step - 1) * part, step * part):
            model.learn(labels[n], images[n])
        measured = accuracy(model, labels[-300:], images[-300:])
        print(f"learned from {step * part} images: {measured:.3f}")
        # What jizi reads: key=value pairs, or one JSON object.
        print("jizi", json.dumps({"step": step, "val_accuracy": measured, "examples": step * part, "total_steps": 4}), flush=True)


main()
