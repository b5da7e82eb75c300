// Bars over time on a canvas: rows of { label, colour, kind, bars: [[start, end, count]] }.

import { painted } from "./dom.js";
import { ticks } from "./time.js";

export const ROW = 26, AXIS = 26;

export function drawBars(canvas, rows, { start, end }, marks = {}) {
  const width = canvas.clientWidth, height = rows.length * ROW + AXIS, ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, height);
  const x = (at) => ((at - start) / (end - start)) * width;
  const line = painted(canvas, "--line"), faint = painted(canvas, "--faint"), ink = painted(canvas, "--ink");
  pen.font = `11px ${painted(canvas, "--font")}`;
  pen.textBaseline = "middle";
  for (const { at, text, strong } of ticks(start, end, width / 90)) {
    pen.fillStyle = strong ? faint : line;
    pen.fillRect(Math.round(x(at)), 0, 1, height - AXIS + 5);
    pen.fillStyle = faint;
    pen.fillText(text, x(at) + 4, height - AXIS / 2 + 1);
  }
  rows.forEach((row, i) => {
    const top = i * ROW;
    if (row.chosen) {
      pen.fillStyle = painted(canvas, "--chosen");
      pen.fillRect(0, top, width, ROW);
    }
    pen.fillStyle = line;
    pen.fillRect(0, top + ROW - 1, width, 1);
    const fill = painted(canvas, row.colour);
    for (const [from, to, count] of row.bars) {
      const left = Math.max(-2, x(from)), wide = Math.min(width + 2, x(to)) - left;
      if (left > width || left + wide < 0) continue;
      pen.fillStyle = row.kind === "unknown" ? hatch(pen, faint) : fill;
      const inset = row.thin ? 8 : 5;
      if (wide < 3) pen.fillRect(left - (to === from ? 1 : 0), top + inset, Math.max(2, wide), ROW - 2 * inset);
      else {
        pen.beginPath();
        pen.roundRect(left, top + inset, wide, ROW - 2 * inset, 3);
        pen.fill();
      }
      if (count > 1 && wide > 26) {
        pen.fillStyle = painted(canvas, "--on");
        pen.fillText(`×${count.toLocaleString()}`, left + 5, top + ROW / 2);
      }
    }
  });
  if (marks.now > start && marks.now < end) {
    pen.fillStyle = painted(canvas, "--accent");
    pen.fillRect(x(marks.now), 0, 2, height - AXIS + 4);
  }
  if (marks.cursor !== undefined && marks.cursor !== null) {
    pen.fillStyle = ink;
    pen.fillRect(x(marks.cursor), 0, 1, height - AXIS + 4);
  }
}

function hatch(pen, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const small = tile.getContext("2d");
  small.strokeStyle = colour;
  small.beginPath();
  small.moveTo(0, 6); small.lineTo(6, 0);
  small.stroke();
  return pen.createPattern(tile, "repeat");
}
