#!/bin/sh
# train.sh - a shell script that jizi tunes: softmax regression on Fashion-MNIST in awk. It knows
# nothing of jizi: flags in, and lines that start with "jizi " out.
#   by hand: examples/any_program/train.sh --lr=0.3 --batch_size=8 --epochs=3
set -eu
lr=0.1 batch_size=16 epochs=4 examples=1500
for flag in "$@"; do
  case $flag in
    --lr=*) lr=${flag#*=} ;;
    --batch_size=*) batch_size=${flag#*=} ;;
    --epochs=*) epochs=${flag#*=} ;;
    --examples=*) examples=${flag#*=} ;;
    *) echo "train.sh: unknown flag $flag" >&2; exit 2 ;;
  esac
done
data=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
[ -e "$data/train-labels-idx1-ubyte.gz" ] || { echo "train.sh: no data in $data: apt-get install dataset-fashion-mnist" >&2; exit 1; }

# The first images and 500 more to validate on: a label and 784 pixels a line.
count=$((examples + 500))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# gzip hears nothing of a head that has enough: it ends by SIGPIPE, which is right.
gzip -dc "$data/train-labels-idx1-ubyte.gz" | tail -c +9 | head -c "$count" | od -An -v -tu1 -w1 >"$work/labels"
gzip -dc "$data/train-images-idx3-ubyte.gz" | tail -c +17 | head -c $((count * 784)) | od -An -v -tu1 -w784 >"$work/images"

paste "$work/labels" "$work/images" | awk -v lr="$lr" -v batch_size="$batch_size" -v epochs="$epochs" -v examples="$examples" '
  { # Means of 4 x 4 pixels: 49 numbers in [0, 1] an image.
    label[NR] = $1
    for (i = 0; i < 784; ++i) x[NR, int(i / 112) * 7 + int(i % 28 / 4)] += $(i + 2) / 4080
  }
  function scores(n,   k, i, most, sum) {
    most = -1e9
    for (k = 0; k < 10; ++k) {
      p[k] = bias[k]
      for (i = 0; i < 49; ++i) p[k] += w[k, i] * x[n, i]
      if (p[k] > most) { most = p[k]; answer = k }
    }
    for (k = 0; k < 10; ++k) { p[k] = exp(p[k] - most); sum += p[k] }
    for (k = 0; k < 10; ++k) p[k] /= sum
  }
  END {
    for (epoch = 1; epoch <= epochs; ++epoch) {
      loss = 0
      for (n = 1; n <= examples; ++n) {
        scores(n)
        loss -= log(p[label[n]] + 1e-9) / examples
        for (k = 0; k < 10; ++k) {
          error = (p[k] - (k == label[n])) / batch_size
          db[k] += error
          for (i = 0; i < 49; ++i) dw[k, i] += error * x[n, i]
        }
        if (n % batch_size && n < examples) continue
        for (k = 0; k < 10; ++k) {
          bias[k] -= lr * db[k]; db[k] = 0
          for (i = 0; i < 49; ++i) { w[k, i] -= lr * dw[k, i]; dw[k, i] = 0 }
        }
      }
      right = 0
      for (n = examples + 1; n <= NR; ++n) { scores(n); right += answer == label[n] }
      printf "epoch %d: loss %.4f\n", epoch, loss
      # What jizi reads. The rest of the output is kept in the trial'"'"'s folder.
      printf "jizi step=%d val_accuracy=%.4f loss=%.4f total_steps=%d\n", epoch, right / (NR - examples), loss, epochs
      fflush()
    }
  }'
