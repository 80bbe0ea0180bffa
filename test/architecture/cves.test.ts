/**
 * The tables of Kubernetes' own vulnerabilities (docs/cves.md) and of attacks (docs/security.md): no cell is empty, and every test that they name
 * exists.
 */
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

/** A path below test/, or one that begins with src/, without `.test.ts`; then, if given, a part of the test's name. */
const namedTest = /^`([^`]+)`(?: "([^"]+)")?$/

/** @returns what is wrong with the tables of attacks of the page, and how many rows they have */
function attackFaultsOf(page: string, textOf: (file: string) => string | undefined): { readonly faults: readonly string[]; readonly rows: number } {
  const faults: string[] = []
  let rows = 0
  let isAttackTable = false
  for (const line of page.split('\n')) {
    if (!line.startsWith('|')) isAttackTable = false
    else if (line === '| attack | what stops it | proved by |') isAttackTable = true
    else if (isAttackTable && !/^\|[-|]+\|$/.test(line)) {
      rows++
      const cells = line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim())
      const [attack = '', , proof = ''] = cells
      if (cells.length !== 3 || cells.includes('')) faults.push(`"${attack}" has not three cells that are filled`)
      for (const named of proof.split(/, (?=`)/)) {
        const [, file, name] = namedTest.exec(named) ?? []
        const text = file && textOf(`${file.startsWith('src/') ? file : `test/${file}`}.test.ts`)
        if (!text) faults.push(`"${attack}": there is no ${named}`)
        else if (name && !text.includes(name)) faults.push(`"${attack}": ${file} has no test "${name}"`)
      }
    }
  }
  return { faults, rows }
}

test('docs/security.md: every attack has an answer and a test that exists', () => {
  const { faults, rows } = attackFaultsOf(fs.readFileSync(path.join(root, 'docs/security.md'), 'utf8'), textOf)
  assert.deepEqual(faults, [])
  assert.ok(rows > 50, `${rows} rows`)
})

test('docs/security.md: the check sees each planted fault', () => {
  const head = '| attack | what stops it | proved by |\n|---|---|---|\n'
  const files: Readonly<Record<string, string>> = { 'test/a.test.ts': "test('AUZ-01 x')", 'src/b.test.ts': "test('y')" }
  const faults = (row: string) => attackFaultsOf(head + row, (file) => files[file]).faults.length
  assert.equal(faults('| a | b | `a` "AUZ-01", `src/b` |'), 0)
  assert.equal(faults('| a | b | `c` |'), 1)
  assert.equal(faults('| a | b | `a`, `c` |'), 1)
  assert.equal(faults('| a | b | `a` "AUZ-02" |'), 1)
  assert.equal(faults('| a |  | `a` |'), 1)
  assert.equal(faults('| a | b | a test |'), 1)
  assert.equal(faults('| a | b |'), 2)
})
