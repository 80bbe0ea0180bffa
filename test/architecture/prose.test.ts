/**
 * Comments, names of tests and pages are plain English: words that almost always mark a riddle are refused. CONTRIBUTING.md, "Language", says what to
 * write instead. Text in backticks, single words in quotes and code blocks are not checked.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const places = ['src', 'test', 'bench', 'scripts', 'docs', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md']
const generated = /(^|\/)(node_modules|dist|gen|vectors)\/|^docs\/status\.md$/

const riddles: readonly RegExp[] = [
  // People instead of components and requests.
  /\b(nobody|no one|somebody|someone's|anybody|everybody|whoever|whom|newcomer)\b/i,
  /^(Who|Whose) /,
  // Speech and hearing instead of mechanisms.
  /\b(tells? of|told|is news|hears?|heard of|a say|had its say|says nothing of|nothing of it)\b/i,
  // Idioms of motion, repair and life.
  /\b(goes on|go on|went on|going on with|lets? go of|on (its|their) way out|gone by|takes? along|comes? along|hurry|whose turn)\b/i,
  /\b(mend(s|ed|ing)?|makes? good|made good|anew|beside|of old|for ever|in vain|in (its|their) stead|to be had|what there is)\b/i,
  /\b(in flight meanwhile|a life of|another life|next life)\b/i,
  // A fragment whose subject the reader has to find.
  /(^|[.:] )Of (a|an|the|two|all|several|those|many|these|its|one|each|what)\b/,
]

const withoutCode = (text: string) =>
  text
    .replace(/`[^`]*`/g, '`…`')
    .replace(/"[^"]*"/g, '"…"')
    .replace(/'[^' ]+'/g, "'…'")

/** The stretches of prose in a file: line number and text. */
function proseOf(name: string, text: string): { line: number; text: string }[] {
  const lines = text.split('\n').map((line, index) => ({ line: index + 1, text: line.trim() }))
  return name.endsWith('.md') ? proseOfPage(lines) : lines.flatMap(proseOfLine(name))
}

type Line = ReturnType<typeof proseOf>[number]

function proseOfPage(lines: readonly Line[]): Line[] {
  let isCode = false
  return lines.filter(({ text }) => {
    if (text.startsWith('```')) isCode = !isCode
    return !isCode && !text.startsWith('```')
  })
}

/** How a test is named: in its call, in a field `name` of a table's row, or by the first words of a row. */
const titles: readonly RegExp[] = [
  /\b(?:test|it|describe|suite)\(\s*(['`"])(.*?)\1\s*,/,
  /\bname: (['`"])((?:(?!\1).)* .*?)\1/,
  /^\[?(['`"])((?:(?!\1).)* (?:(?!\1).)* (?:(?!\1).)*)\1,/,
]

/** Keeps whether the line is within a block comment from one line to the next. */
function proseOfLine(name: string): (line: Line) => Line[] {
  let isBlock = false
  return ({ line, text }) => {
    if (isBlock || text.startsWith('/*')) {
      isBlock = !text.includes('*/')
      return [{ line, text: text.replace(/^\/?\*+\/?|\*\/$/g, '').trim() }]
    }
    const comment = /(?:^|[\s;{},)])\/\/ (.*)$/.exec(text)?.[1]
    const title = name.endsWith('.test.ts') || name.includes('/behaviours/') ? titles.map((title) => title.exec(text)?.[2]).find(Boolean) : undefined
    return [comment, title].flatMap((found) => (found === undefined ? [] : [{ line, text: found }]))
  }
}

function findings(name: string, text: string): string[] {
  return proseOf(name, text).flatMap((prose) => {
    const found = riddles.map((riddle) => riddle.exec(withoutCode(prose.text))?.[0].trim()).find((word) => word !== undefined)
    return found === undefined ? [] : [`${name}:${prose.line}: "${found}" in: ${prose.text}`]
  })
}

function filesOf(place: string): string[] {
  const full = path.join(root, place)
  if (fs.statSync(full).isFile()) return [place]
  const names = fs.readdirSync(full, { recursive: true, encoding: 'utf8' }).map((name) => path.join(place, name))
  return names.filter((name) => /\.(ts|mjs|md)$/.test(name) && !generated.test(name))
}

test('prose: comments, test names and pages hold no words that mark a riddle', () => {
  const files = places.flatMap(filesOf)
  assert.ok(files.length > 2000, `${files.length} files`)
  assert.deepEqual(
    files.flatMap((name) => findings(name, fs.readFileSync(path.join(root, name), 'utf8'))),
    [],
  )
})

const word = ['no', 'body'].join('')
const planted: readonly { readonly name: string; readonly text: string; readonly count: number }[] = [
  { name: 'a.ts', text: `/** Set when ${word} uses it. */\nexport const a = 1 // ${word}\n`, count: 2 },
  { name: 'a.ts', text: `/**\n * Two lines,\n * of which ${word} reads the second.\n */\n`, count: 1 },
  { name: 'a.test.ts', text: `test('API-01 ${word} may create', () => {})\n`, count: 1 },
  { name: 'a.test.ts', text: `  { name: '${word} may create', want: 403 },\n  ['a claim of ${word}', {}],\n`, count: 2 },
  { name: 'a.md', text: `A page that ${word} reads.\n\n\`\`\`\n${word}\n\`\`\`\n\`${word}\` is a user.\n`, count: 1 },
  { name: 'a.ts', text: `const ${word} = '${word}'\n`, count: 0 },
]
for (const [index, { name, text, count }] of planted.entries()) {
  test(`prose: ${count} findings in planted text ${index} of ${name}`, () => assert.equal(findings(name, text).length, count))
}
