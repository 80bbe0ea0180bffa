/**
 * The picture of the layers in docs/how-it-works.md: the folders of src/ from the table in architecture/layers.ts, each in the row above all that it
 * imports. A box names the imports that none of its other imports brings along.
 */
import { layers } from '../../architecture/layers.ts'

const [boxWidth, boxHeight, gap, margin, rowGap] = [150, 54, 14, 24, 26]
const mostInRow = 6
const fontOfNames = 15
const lettersInLine = 23

export function layersPicture() {
  const folders = Object.keys(layers).filter((folder) => folder !== 'testing')
  const rows = rowsOf(folders)
  const width = 2 * margin + mostInRow * boxWidth + (mostInRow - 1) * gap
  const height = 2 * margin + rows.length * boxHeight + (rows.length - 1) * rowGap
  const boxes = rows.flatMap(({ row }, at) => {
    const y = margin + at * (boxHeight + rowGap)
    const start = (width - row.length * boxWidth - (row.length - 1) * gap) / 2
    return row.map((folder, place) => box(folder, start + place * (boxWidth + gap), y))
  })
  const lines = rows.flatMap(({ depth }, at) => {
    if (at === 0 || rows[at - 1].depth === depth) return []
    const y = margin + at * (boxHeight + rowGap) - rowGap / 2
    return [`<path class="line" d="M${margin} ${y}H${width - margin}"/>`]
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title about">
<title id="title">The layers of Skiff's source</title>
<desc id="about">${xmlText(describe(rows))}</desc>
<style>
.ground{fill:#fff}.box{fill:#eef3f9;stroke:#6f86a3}.name{font:600 ${fontOfNames}px system-ui,sans-serif;fill:#1c2430}.imports{font:11px system-ui,sans-serif;fill:#4a5666}.line{stroke:#c3ccd8;stroke-dasharray:4 4}
@media (prefers-color-scheme:dark){.ground{fill:#14171c}.box{fill:#222936;stroke:#6f86a3}.name{fill:#dfe4ec}.imports{fill:#a3adbb}.line{stroke:#444d5c}}
</style>
<rect class="ground" width="${width}" height="${height}"/>
${lines.join('\n')}
${boxes.join('\n')}
</svg>
`
}

/** Rows of folders, the highest first; several rows of one depth where a row would be too long. */
function rowsOf(folders) {
  const depths = new Map()
  const depthOf = (folder) => {
    const known = depths.get(folder)
    if (known !== undefined) return known
    const depth = 1 + Math.max(-1, ...layers[folder].map(depthOf))
    depths.set(folder, depth)
    return depth
  }
  const deepest = Math.max(...folders.map(depthOf))
  const depthsDown = Array.from({ length: deepest + 1 }, (_, at) => deepest - at)
  return depthsDown.flatMap((depth) => divided(folders.filter((folder) => depthOf(folder) === depth)).map((row) => ({ depth, row })))
}

function divided(row) {
  const parts = Math.ceil(row.length / mostInRow)
  const size = Math.ceil(row.length / parts)
  return Array.from({ length: parts }, (_, at) => row.slice(at * size, (at + 1) * size))
}

/** The imports of a folder without those that another of its imports has too. */
function nearest(folder) {
  return layers[folder].filter((one) => !layers[folder].some((other) => reaches(other, one)))
}

function reaches(from, to) {
  return layers[from].includes(to) || layers[from].some((one) => reaches(one, to))
}

function box(folder, x, y) {
  const imports = nearest(folder)
  const text = imports.join(', ')
  const shown = folder === 'main' ? 'puts all of them together' : text.length > lettersInLine ? `${imports.slice(0, 3).join(', ')}, …` : text
  const middle = x + boxWidth / 2
  return `<g><rect class="box" x="${x}" y="${y}" width="${boxWidth}" height="${boxHeight}" rx="7"/><text class="name" x="${middle}" y="${y + 23}" text-anchor="middle">${folder}</text><text class="imports" x="${middle}" y="${y + 41}" text-anchor="middle">${xmlText(shown)}</text></g>`
}

const xmlText = (text) => text.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign])

/** The same in words, for those who do not see the picture. */
function describe(rows) {
  return rows
    .flatMap(({ row }) => row)
    .map((folder) => (layers[folder].length === 0 ? `${folder} imports nothing.` : `${folder} imports ${layers[folder].join(', ')}.`))
    .join(' ')
}
