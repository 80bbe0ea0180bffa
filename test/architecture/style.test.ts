/** The rules of style that a linter does not know: headers, docstrings, no waiting in unit tests, output and environment only at the edge. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const source = path.resolve(import.meta.dirname, '../../src')

/** Every file that people wrote: path below src/, and text. */
const files = fs
  .readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !/^(api\/gen|grpc\/proto)\//.test(name))
  .map((name) => ({ name, text: fs.readFileSync(path.join(source, name), 'utf8') }))
const isTest = (name: string) => name.endsWith('.test.ts')
const longerThan = 10

/** Long exported functions without a docstring, in files with several: where a file has one, its header speaks for it. */
function undocumented(name: string, text: string): string[] {
  const exported = [...text.matchAll(/(\*\/\n)?^export (?:async )?function\*? (\w+)[\s\S]*?^\}$/gm)]
  const subject = path.basename(name, '.ts').toLowerCase()
  if (exported.length < 2) return []
  return exported
    .filter(([body, docstring]) => !docstring && body.split('\n').length > longerThan)
    .map(([, , func = '']) => func)
    .filter((func) => !func.toLowerCase().includes(subject))
}

/** Timers with a delay, and waits of the platform. */
const waits = /\bsetTimeout\(|\bsetInterval\(|import \{[^}]*\bsetTimeout\b/

interface Rule {
  readonly name: string
  readonly breaks: (name: string, text: string) => boolean
  readonly planted: { readonly name: string; readonly text: string }
}

const rules: readonly Rule[] = [
  {
    name: 'every file opens with a header',
    breaks: (name, text) => !isTest(name) && !/^(#!.*\n)?\/\*\*/.test(text),
    planted: { name: 'a.ts', text: "import a from 'b'\n/** Late. */\n" },
  },
  {
    name: 'long exported functions of files with several have a docstring',
    breaks: (name, text) => !isTest(name) && undocumented(name, text).length > 0,
    planted: { name: 'a.ts', text: `export function x() {${'\n  go()'.repeat(longerThan)}\n}\n\nexport function y() {\n}\n` },
  },
  {
    name: 'unit tests wait for nothing',
    breaks: (name, text) => isTest(name) && waits.test(text),
    planted: { name: 'a.test.ts', text: 'await new Promise((resolve) => setTimeout(resolve, 100))\n' },
  },
  {
    name: 'beforeEach and afterEach stand inside a describe, since unit tests share a process and hooks outside run for the tests of every file',
    breaks: (name, text) => isTest(name) && /^(beforeEach|afterEach)\(/m.test(text),
    planted: { name: 'a.test.ts', text: 'beforeEach(() => makeHome())\n' },
  },
  {
    name: 'only the edge prints',
    breaks: (name, text) => !/^(main|cli)\//.test(name) && /\bconsole\./.test(text),
    planted: { name: 'base/a.ts', text: "console.log('here')\n" },
  },
  {
    name: 'only main/ reads the environment',
    breaks: (name, text) => !/^main\//.test(name) && /\bprocess\.env\b/.test(text),
    planted: { name: 'cli/a.ts', text: 'const home = process.env.HOME\n' },
  },
  {
    name: 'signals are combined and limited in time by base/abortScope alone',
    breaks: (_, text) => /\bAbortSignal\s*\.\s*(any|timeout)\(/.test(text),
    planted: { name: 'a.ts', text: 'const limited = AbortSignal.any([signal, AbortSignal.timeout(1000)])\n' },
  },
  {
    name: 'directories with those above them are made by host/files alone, since a recursive mkdir of Node may never end',
    breaks: (name, text) => !isTest(name) && /\bmkdir(Sync)?\([^;]*\brecursive: true/.test(text),
    planted: { name: 'a.ts', text: 'await fs.mkdir(directory, { recursive: true, mode: 0o700 })\n' },
  },
  {
    name: 'the message of anything thrown comes from base/messageOf',
    breaks: (name, text) => name !== 'base/messageOf.ts' && /(\w+) instanceof Error \? \1\.message : String\(\1\)/.test(text),
    planted: { name: 'a.ts', text: 'const text = error instanceof Error ? error.message : String(error)\n' },
  },
  {
    name: 'nothing is left for later',
    breaks: (_, text) => /\b(TODO|FIXME|XXX)\b|@ts-ignore|@ts-expect-error|biome-ignore|\bas any\b/.test(text),
    planted: { name: 'a.ts', text: '// TODO\n' },
  },
]
for (const { name, breaks, planted } of rules) {
  test(`style: ${name}`, () => {
    assert.deepEqual(
      files.filter((file) => breaks(file.name, file.text)).map((file) => file.name),
      [],
    )
    assert.ok(breaks(planted.name, planted.text), 'the rule must see a planted fault')
    assert.ok(files.length > 400)
  })
}
