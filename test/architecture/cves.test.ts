/** The table of Kubernetes' own vulnerabilities (docs/cves.md): whole, and its tests are there. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')

/** A row without a test gives the reason. */
const unproved = /^cannot apply: /

/** @returns what is wrong with the page */
function faultsOf(page: string, textOf: (file: string) => string | undefined): string[] {
  const rows = page.split('\n').filter((line) => /^\| CVE-/.test(line))
  const known = new Set<string>()
  return rows.flatMap((row) => {
    const cells = row
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim())
    const ids = (cells[0] ?? '').split(', ')
    const faults: string[] = []
    for (const id of ids) {
      if (!/^CVE-\d{4}-\d{4,7}$/.test(id) || known.has(id)) faults.push(`${id} is no number, or stands twice`)
      known.add(id)
    }
    if (cells.some((cell) => cell === '')) faults.push(`${ids[0]} has an empty cell`)
    if (cells.length === 2) return faults
    const [, , here = '', proof = ''] = cells
    const [, file, name] = /^`([^`]+)` "([^"]+)"$/.exec(proof) ?? []
    if (proof === 'none') return unproved.test(here) ? faults : [...faults, `${ids[0]} has no test, and no reason`]
    if (cells.length !== 4 || !file || !name) return [...faults, `${ids[0]} names no test: ${proof}`]
    const text = textOf(file)
    if (text === undefined) return [...faults, `${ids[0]}: there is no ${file}`]
    return text.includes(name) ? faults : [...faults, `${ids[0]}: ${file} has no test "${name}"`]
  })
}

const page = fs.readFileSync(path.join(root, 'docs/cves.md'), 'utf8')
const textOf = (file: string) => {
  const at = path.join(root, file)
  return fs.existsSync(at) ? fs.readFileSync(at, 'utf8') : undefined
}

test('docs/cves.md: every CVE has a test that exists, or the reason why it cannot apply', () => {
  assert.deepEqual(faultsOf(page, textOf), [])
  assert.ok((page.match(/CVE-\d/g)?.length ?? 0) > 100)
})

test('docs/cves.md: the check sees each planted fault', () => {
  const faults = (row: string) => faultsOf(row, (file) => (file === 'a.test.ts' ? "test('CVE-2020-1000 x')" : undefined)).length
  assert.equal(faults('| CVE-2020-1000 | a | b | `a.test.ts` "CVE-2020-1000" |'), 0)
  assert.equal(faults('| CVE-2020-1000 | a | cannot apply: no such thing | none |'), 0)
  assert.equal(faults('| CVE-2020-1000 | a | b | `b.test.ts` "CVE-2020-1000" |'), 1)
  assert.equal(faults('| CVE-2020-1000 | a | b | `a.test.ts` "CVE-2020-2000" |'), 1)
  assert.equal(faults('| CVE-2020-1000 | a | b | none |'), 1)
  assert.equal(faults('| CVE-2020-1000 |  | b | `a.test.ts` "x" |'), 1)
  assert.equal(faults('| CVE-2020-1000 | a | b | a test |'), 1)
  assert.equal(faults('| CVE-20-1 | a |'), 1)
  assert.equal(faults('| CVE-2020-1000, CVE-2020-1000 | a |'), 1)
})
