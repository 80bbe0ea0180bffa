/**
 * A checker that cannot fail is no checker: plants one fault of each kind in a copy of the configuration's world and asserts that the linter names it.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { before, test } from 'node:test'
import { layers, rooms } from '../../architecture/layers.ts'

const root = path.resolve(import.meta.dirname, '../..')
const biome = path.join(root, 'node_modules/.bin/biome')

interface Diagnostic {
  category: string
  location: { path: string }
}

/** Lints a tree of planted files with the project's configuration, whose size makes one run for each fault slow; fails unless every file was read. */
function lint(files: [file: string, text: string][]): Diagnostic[] {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-layers-'))
  try {
    const config = JSON.parse(fs.readFileSync(path.join(root, 'biome.json'), 'utf8'))
    delete config.$schema
    fs.writeFileSync(path.join(dir, 'biome.json'), JSON.stringify(config))
    fs.copyFileSync(path.join(root, 'package.json'), path.join(dir, 'package.json'))
    for (const [name, text] of files) {
      fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true })
      fs.writeFileSync(path.join(dir, name), text)
    }
    const { stdout } = spawnSync(biome, ['lint', '--max-diagnostics=none', '--reporter=json', 'src'], { cwd: dir, encoding: 'utf8', maxBuffer: 64 << 20 })
    const { summary, diagnostics } = JSON.parse(stdout.slice(0, stdout.lastIndexOf('}') + 1))
    assert.equal(summary.unchanged, files.length)
    return diagnostics
  } finally {
    fs.rmSync(dir, { recursive: true, force: true })
  }
}

const clock = 'export const clock = 1\n'
const faults: { name: string; files: Record<string, string>; rule: string }[] = [
  {
    name: 'an import by name of a layer above',
    files: { 'src/client/clock.ts': clock, 'src/api/a.ts': "import { clock } from '#client/clock'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a type-only import of a layer above',
    files: { 'src/client/clock.ts': 'export type Clock = number\n', 'src/api/a.ts': "import type { Clock } from '#client/clock'\nexport const a: Clock = 1\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a climbing path into another layer',
    files: { 'src/store/clock.ts': clock, 'src/kubelet/a.ts': "import { clock } from '../store/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'one component importing another',
    files: { 'src/scheduler/clock.ts': clock, 'src/controllers/a.ts': "import { clock } from '#scheduler/clock'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a subfolder importing one above it in the same room',
    files: { 'src/store/drivers/clock.ts': clock, 'src/store/local/a.ts': "import { clock } from '../drivers/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a deeper folder importing a subfolder above its own',
    files: { 'src/store/drivers/clock.ts': clock, 'src/store/local/mvcc/a.ts': "import { clock } from '../../drivers/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'authorization importing authentication, which stands above it',
    files: { 'src/apiserver/authn/clock.ts': clock, 'src/apiserver/authz/a.ts': "import { clock } from '../authn/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'the machinery importing the schema, which stands above it',
    files: { 'src/api/schema/clock.ts': clock, 'src/api/machinery/a.ts': "import { clock } from '../schema/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'the schema importing managed fields by name, which stand above it',
    files: { 'src/api/managedFields/clock.ts': clock, 'src/api/schema/a.ts': "import { clock } from '#api/managedFields/clock'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'the generic registry importing a kind of the server, which stands above it',
    files: { 'src/apiserver/kinds/clock.ts': clock, 'src/apiserver/registry/a.ts': "import { clock } from '../kinds/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a subfolder importing a file of the assembly above it by name',
    files: { 'src/apiserver/clock.ts': clock, 'src/apiserver/core/a.ts': "import { clock } from '#apiserver/clock'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'the volumes of the kubelet importing its pods, which stand above them',
    files: { 'src/kubelet/pods/clock.ts': clock, 'src/kubelet/volumes/a.ts': "import { clock } from '../pods/clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a deeper folder of the kubelet importing the assembly',
    files: { 'src/kubelet/clock.ts': clock, 'src/kubelet/server/stats/a.ts': "import { clock } from '../../clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'a subfolder importing a file of the assembly above it',
    files: { 'src/store/clock.ts': clock, 'src/store/local/a.ts': "import { clock } from '../clock.ts'\nexport const a = clock\n" },
    rule: 'noRestrictedImports',
  },
  {
    name: 'I/O in a pure folder of a room',
    files: { 'src/store/local/mvcc/a.ts': "import fs from 'node:fs'\nexport const a = fs.constants\n" },
    rule: 'noRestrictedImports',
  },
  { name: 'I/O in pure code', files: { 'src/api/a.ts': "import fs from 'node:fs'\nexport const a = fs.constants\n" }, rule: 'noRestrictedImports' },
  { name: 'a clock read in pure code', files: { 'src/base/a.ts': 'export const a = Date.now()\n' }, rule: 'noRestrictedGlobals' },
  {
    name: 'a timer in a scheduler plugin',
    files: { 'src/scheduler/plugins/a.ts': 'export const a = () => setTimeout(() => {}, 1)\n' },
    rule: 'noRestrictedGlobals',
  },
  {
    name: 'an import cycle of types only',
    files: {
      'src/base/a.ts': "import type { B } from './b.ts'\nexport type A = { b?: B }\n",
      'src/base/b.ts': "import type { A } from './a.ts'\nexport type B = { a?: A }\n",
    },
    rule: 'noImportCycles',
  },
  {
    name: 'a file of 501 lines',
    files: { 'src/base/a.ts': 'export {}\n'.padEnd(11 + 500, '\n').concat('export const a = 1\n') },
    rule: 'noExcessiveLinesPerFile',
  },
  { name: 'a function of 101 lines', files: { 'src/base/a.ts': `export function a() {\n${'  a.name\n'.repeat(101)}}\n` }, rule: 'noExcessiveLinesPerFunction' },
  { name: 'any', files: { 'src/base/a.ts': 'export const a = (x: any) => x\n' }, rule: 'noExplicitAny' },
  {
    name: 'a floating promise',
    files: { 'src/client/a.ts': 'async function f(): Promise<void> {}\nexport function g() {\n  f()\n}\n' },
    rule: 'noFloatingPromises',
  },
]
const cleanTrees: { name: string; files: Record<string, string> }[] = [
  {
    name: 'a layer below',
    files: { 'src/base/a.ts': clock, 'src/api/b.ts': "import { clock } from '#base/a'\nexport const b = clock\n" },
  },
  {
    name: 'a folder below in the same room, by path and by name',
    files: {
      'src/api/machinery/clock.ts': clock,
      'src/api/schema/a.ts': "import { clock } from '../machinery/clock.ts'\nexport const a = clock\n",
      'src/api/schema/b.ts': "import { clock } from '#api/machinery/clock'\nexport const b = clock\n",
    },
  },
  {
    name: 'a shared file of the same room, by path and by name',
    files: {
      'src/store/local/a.ts': "import { clock } from '../store.ts'\nexport const a = clock\n",
      'src/store/local/b.ts': "import { clock } from '#store/store'\nexport const b = clock\n",
    },
  },
]

/** Files of all trees stand side by side in one: `a.ts` of the seventh is `a7.ts`, in its path and in the imports of its neighbours. */
function planted(files: Record<string, string>, number: number): [file: string, text: string][] {
  const numbered = (text: string) => text.replace(/\b(clock|a|b)(?=\.ts|')/g, `$1${number}`)
  return Object.entries(files).map(([file, text]) => [numbered(file), numbered(text)])
}
const trees = [...faults, ...cleanTrees].map(({ files }, number) => planted(files, number))
let found: Diagnostic[] = []
before(() => {
  found = lint([['src/store/store.ts', clock], ...trees.flat()])
})
const rulesBroken = (tree: number) => {
  const files = trees[tree]!.map(([file]) => file)
  return found.filter(({ location }) => files.includes(location.path)).map(({ category }) => category.split('/').at(-1))
}

for (const [i, { name, rule }] of faults.entries()) test(`the linter names ${name}`, () => assert.ok(rulesBroken(i).includes(rule), JSON.stringify(found)))

for (const [i, { name }] of cleanTrees.entries()) test(`the linter passes an import of ${name}`, () => assert.deepEqual(rulesBroken(faults.length + i), []))

test('the generic registry knows the shape of strategies, and no kind of the API', () => {
  const folder = path.join(root, 'src/apiserver/registry')
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const imported = files.flatMap((name) => [...fs.readFileSync(path.join(folder, name), 'utf8').matchAll(/'(#api\/(?:kinds|gen)\/.*)'/g)])
  assert.deepEqual([...new Set(imported.map(([, module]) => module))], ['#api/kinds/defineKind'])
})

test('every folder of a room is in the table', () => {
  for (const [room, folders] of Object.entries(rooms)) {
    const found = fs.readdirSync(path.join(root, 'src', room), { withFileTypes: true }).filter((entry) => entry.isDirectory())
    assert.deepEqual(found.map(({ name }) => name).sort(), Object.keys(folders).sort())
  }
})

test('biome.json is generated from the layer table', () => {
  const before = fs.readFileSync(path.join(root, 'biome.json'), 'utf8')
  const printed = execFileSync(process.execPath, ['--import', 'tsx', 'scripts/layers.mjs', '--print'], { cwd: root, encoding: 'utf8' })
  assert.deepEqual(JSON.parse(before), JSON.parse(printed))
})

test('every folder of src is in the table', () => {
  const folders = fs.readdirSync(path.join(root, 'src'))
  assert.deepEqual(
    folders.filter((folder) => !(folder in layers)),
    [],
  )
})
