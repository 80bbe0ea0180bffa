/** The page's files (L4): read once, by name, so that no path leads out of their folder. Names with a hash may be kept by browsers. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { bareMap } from '#base/bareMap'

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
  /** Made when a browser first asks for it. */
  zipped(): Buffer
  readonly isHashed: boolean
}

const types: Readonly<Record<string, string>> = bareMap({
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
})

/** By the path in the URL. @throws Error when the page is not built */
export async function readAssets(directory: string): Promise<ReadonlyMap<string, Asset>> {
  const names = (await fs.readdir(directory)).filter((name) => types[path.extname(name)] !== undefined)
  if (!names.includes('index.html')) throw new Error(`${directory} has no index.html`)
  const assets = await Promise.all(
    names.map(async (name): Promise<[string, Asset]> => {
      const bytes = await fs.readFile(path.join(directory, name))
      const type = types[path.extname(name)] ?? ''
      let packed: Buffer | undefined
      const zipped = () => {
        packed ??= gzipSync(bytes)
        return packed
      }
      return [`/${name === 'index.html' ? '' : name}`, { type, bytes, zipped, isHashed: /-[A-Z0-9]{8}\.\w+$/.test(name) }]
    }),
  )
  return new Map(assets)
}
