/** The documentation as a site: it builds without a network, no link in it leads nowhere, and it uses no file of another address. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../../..')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-site-'))
after(() => fs.rmSync(directory, { recursive: true }))

const out = path.join(directory, 'site')
const build = (...args: string[]) => spawnSync(process.execPath, [path.join(root, 'scripts/site/build.mjs'), ...args], { encoding: 'utf8' })
const filesBelow = (folder: string) =>
  fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => fs.statSync(path.join(folder, name)).isFile())

test('LRN-01 the site builds, and every link, anchor and image in it is there', () => {
  const { status, stderr } = build(out)
  assert.equal(status, 0, stderr)
  const pages = filesBelow(out).filter((name) => name.endsWith('.html'))
  assert.ok(pages.length > 40, `${pages.length} pages`)
  const dead = pages.flatMap((page) => {
    const html = fs.readFileSync(path.join(out, page), 'utf8')
    const targets = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target = '']) => target.replaceAll('&amp;', '&'))
    return targets.filter((target) => !/^(https?|mailto):/.test(target) && !isThere(page, target)).map((target) => `${page}: ${target}`)
  })
  assert.deepEqual(dead, [])
})

function isThere(page: string, target: string): boolean {
  const [file = '', anchor = ''] = target.split('#')
  const full = file === '' ? path.join(out, page) : path.join(out, path.dirname(page), file)
  if (!fs.existsSync(full)) return false
  return anchor === '' || fs.readFileSync(full, 'utf8').includes(` id="${decodeURIComponent(anchor)}"`)
}

test('LRN-01 pages of the site use no script, style, font or image of another address', () => {
  const patterns = { html: /<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:)?\/\/[^"]*"/g, css: /url\(|@import/g, js: /\bfetch\(|https?:/g }
  const files = filesBelow(out).filter((name) => !name.endsWith('search-index.js'))
  const foreign = files.flatMap((name) => {
    const pattern = patterns[path.extname(name).slice(1) as keyof typeof patterns]
    const found = pattern === undefined ? [] : (fs.readFileSync(path.join(out, name), 'utf8').match(pattern) ?? [])
    return found.map((text) => `${name}: ${text}`)
  })
  assert.deepEqual(foreign, [])
})

test('LRN-01 the search has an entry for each heading of a page', () => {
  const script = fs.readFileSync(path.join(out, 'assets/search-index.js'), 'utf8')
  const entries = JSON.parse(script.replace('globalThis.skiffSearchIndex = ', '')) as string[][]
  const found = entries.find(([link]) => link === 'time-travel.html#what-changed')
  assert.deepEqual(found?.slice(1, 3), ['Time travel', 'What changed'])
  assert.match(found?.[3] ?? '', /skiff history configmap prices/)
})

const faults = [
  { name: 'a page that is not there', text: '[one](other.md)', want: /docs\/a\.md: other\.md leads to no file/ },
  { name: 'a heading that is not there', text: '[one](#nothing)', want: /docs\/a\.md: #nothing leads to no heading/ },
  { name: 'an image that is not there', text: '![one](a.png)', want: /docs\/a\.md: a\.png leads to no file/ },
  {
    name: 'an image of another address',
    text: '![one](https://example.com/a.png)',
    want: /docs\/a\.md: the image https:\/\/example\.com\/a\.png is of another address/,
  },
  { name: 'a file that is not part of the site', text: '[one](../src/main.ts)', want: /docs\/a\.md: \.\.\/src\/main\.ts leads to no file/ },
]
for (const { name, text, want } of faults) {
  test(`LRN-01 the build refuses ${name}, and names page and link`, () => {
    const checkout = fs.mkdtempSync(path.join(directory, 'checkout-'))
    fs.mkdirSync(path.join(checkout, 'docs'))
    fs.writeFileSync(path.join(checkout, 'docs/a.md'), `# A\n\n${text}\n`)
    const { status, stderr } = build(path.join(checkout, 'site'), '--root', checkout)
    assert.equal(status, 1)
    assert.match(stderr, want)
    assert.equal(fs.existsSync(path.join(checkout, 'site')), false)
  })
}

test('LRN-01 a page becomes HTML as on GitHub: anchors, tables, code as text, no tags of its own', () => {
  const checkout = fs.mkdtempSync(path.join(directory, 'checkout-'))
  fs.mkdirSync(path.join(checkout, 'docs'))
  const page = ['# A & B', '## `skiff up`: flags', '## `skiff up`: flags', '[back](#skiff-up-flags-1) <b>bold</b>', '', '| a |', '|---|', '| x<br>y |', '']
  fs.writeFileSync(path.join(checkout, 'docs/a.md'), `${page.join('\n')}\n\`\`\`console\n$ echo '<i>'\n<i>\n\`\`\`\n`)
  assert.equal(build(path.join(checkout, 'site'), '--root', checkout).stderr, '')
  const html = fs.readFileSync(path.join(checkout, 'site/a.html'), 'utf8')
  for (const part of [
    '<title>A &amp; B · Skiff</title>',
    '<h2 id="skiff-up-flags"><code>skiff up</code>: flags</h2>',
    '<h2 id="skiff-up-flags-1">',
    'href="#skiff-up-flags-1"',
    '&lt;b&gt;bold&lt;/b&gt;',
    /<td>x<br ?\/?>\s*y<\/td>/,
    '<span class="prompt">$ </span><span class="command">echo \'&lt;i&gt;\'</span>\n&lt;i&gt;',
  ])
    assert.ok(typeof part === 'string' ? html.includes(part) : part.test(html), `${part} in\n${html}`)
})

test('LRN-01 the generated pages and the picture of the layers are those of the source', () => {
  const fresh = path.join(directory, 'docs')
  execFileSync(process.execPath, ['--import', 'tsx', 'scripts/reference/write.mjs', fresh], { cwd: root, stdio: 'pipe' })
  const names = filesBelow(fresh)
  assert.ok(names.length >= 15, names.join(', '))
  const committed = fs.readdirSync(path.join(root, 'docs/reference')).map((name) => `reference/${name}`)
  assert.deepEqual([...committed, 'layers.svg'].sort(), names.sort(), 'pages of docs/reference: make reference')
  for (const name of names) {
    const read = (folder: string) => fs.readFileSync(path.join(folder, name), 'utf8')
    assert.equal(read(path.join(root, 'docs')), read(fresh), `docs/${name} is out of date: make reference`)
  }
})
