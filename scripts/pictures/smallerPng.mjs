/**
 * Makes a screenshot a PNG with a palette, a third as long: the page has few colours, apart from those of smoothed edges. The most frequent colours stay as
 * they are; any other one becomes the nearest of them.
 */
import zlib from 'node:zlib'

const signature = Buffer.from('89504e470d0a1a0a', 'hex')
const mostColors = 256

/** @param png of 8 bits a channel, RGB or RGBA, not interlaced, as Chromium writes it */
export function smaller(png) {
  const { width, height, pixels, channels } = decoded(png)
  const colorOf = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]
  const palette = paletteOf(counted(pixels, channels, colorOf))
  const known = new Map(palette.map((color, index) => [color, index]))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += channels) {
      const color = colorOf(at)
      let index = known.get(color)
      if (index === undefined) {
        index = nearest(palette, color)
        known.set(color, index)
      }
      rows[y * (width + 1) + 1 + x] = index
    }
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]))
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('PLTE', colors),
    chunk('IDAT', zlib.deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function counted(pixels, channels, colorOf) {
  const counts = new Map()
  for (let at = 0; at < pixels.length; at += channels) counts.set(colorOf(at), (counts.get(colorOf(at)) ?? 0) + 1)
  return counts
}

/** Frequent colours first; one that is close to a colour of the palette takes no place of its own. */
function paletteOf(counts) {
  const sorted = [...counts].sort(([, one], [, other]) => other - one).map(([color]) => color)
  const palette = []
  for (const color of sorted) {
    if (palette.length === mostColors) break
    if (palette.length < 32 || distance(color, palette[nearest(palette, color)]) > 48) palette.push(color)
  }
  return palette
}

function nearest(palette, color) {
  let [best, least] = [0, Number.POSITIVE_INFINITY]
  for (let index = 0; index < palette.length; index++) {
    const far = distance(palette[index], color)
    if (far < least) [best, least] = [index, far]
  }
  return best
}

function distance(one, other) {
  const [red, green, blue] = [(one >> 16) - (other >> 16), ((one >> 8) & 255) - ((other >> 8) & 255), (one & 255) - (other & 255)]
  return red * red + green * green + blue * blue
}

function decoded(png) {
  const parts = new Map()
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    parts.set(type, [...(parts.get(type) ?? []), png.subarray(at + 8, at + 8 + length)])
    at += 12 + length
  }
  const [head] = parts.get('IHDR')
  const [width, height, channels] = [head.readUInt32BE(0), head.readUInt32BE(4), { 2: 3, 6: 4 }[head[9]]]
  if (head[8] !== 8 || head[12] !== 0 || channels === undefined) throw new Error('the picture has another format than Chromium writes')
  return { width, height, channels, pixels: unfiltered(zlib.inflateSync(Buffer.concat(parts.get('IDAT'))), width * channels, height, channels) }
}

/** PNG filters each row by its neighbours: none, left, above, their average, or Paeth's predictor. */
function unfiltered(raw, rowBytes, height, channels) {
  const pixels = Buffer.alloc(rowBytes * height)
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (rowBytes + 1)]
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x
      const left = x >= channels ? pixels[at - channels] : 0
      const above = y > 0 ? pixels[at - rowBytes] : 0
      const corner = x >= channels && y > 0 ? pixels[at - rowBytes - channels] : 0
      pixels[at] = raw[y * (rowBytes + 1) + 1 + x] + [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter]
    }
  }
  return pixels
}

function paeth(left, above, corner) {
  const guess = left + above - corner
  const [byLeft, byAbove, byCorner] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)]
  return byLeft <= byAbove && byLeft <= byCorner ? left : byAbove <= byCorner ? above : corner
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  body.copy(framed, 4)
  framed.writeUInt32BE(zlib.crc32 ? zlib.crc32(body) : crc32(body), body.length + 4)
  return framed
}

/** Node 20 has none of its own. */
function crc32(bytes) {
  let crc = ~0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return ~crc >>> 0
}
