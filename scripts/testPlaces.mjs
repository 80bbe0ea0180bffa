/**
 * Names the places of sources in what a process of tests has printed. Its stack traces name places in bundles: with --enable-source-maps, node reads and decodes the
 * maps of all bundles in each process, also where no test fails.
 */
import fs from 'node:fs'
import { SourceMap } from 'node:module'
import path from 'node:path'

/** @returns the function that replaces each `BUNDLE:LINE:COLUMN` of a text, absolute, as a URL or relative to `root`, by the place in the source */
export function sourcePlacesIn(root, bundles) {
  const maps = new Map()
  const mapOf = (file) => {
    if (!maps.has(file)) maps.set(file, fs.existsSync(`${file}.map`) ? new SourceMap(JSON.parse(fs.readFileSync(`${file}.map`, 'utf8'))) : undefined)
    return maps.get(file)
  }
  const within = escapeText(path.relative(root, bundles))
  const places = new RegExp(`(file://)?(${escapeText(root)}/)?${within}/([\\w./-]+\\.mjs):(\\d+):(\\d+)`, 'g')
  return (text) =>
    text.replace(places, (whole, _scheme, isAbsolute, name, line, column) => {
      const file = path.join(bundles, name)
      const { originalSource, originalLine, originalColumn } = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1) ?? {}
      if (originalSource === undefined) return whole
      const source = path.resolve(path.dirname(file), originalSource)
      return `${isAbsolute ? source : path.relative(root, source)}:${originalLine + 1}:${originalColumn + 1}`
    })
}

const escapeText = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
