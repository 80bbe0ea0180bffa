/**
 * What the site consists of: the pages in the order of its navigation, and the file that each one becomes. Pages are Markdown of this repository, and
 * links between them are the relative links that also work where the repository is browsed.
 */
import fs from 'node:fs'
import path from 'node:path'

const { posix } = path

/** Headings of the navigation and their pages. A page of docs/ that none of them names is put under the last one. */
const sections = [
  { title: 'Start', pages: ['docs/README.md', 'README.md', 'docs/quick-start.md', 'docs/comparison.md'] },
  {
    title: 'Learn',
    pages: ['README', 'apply', 'store', 'watches', 'controllers', 'scheduling', 'services'].map((name) => `docs/learn/${name}.md`).concat('docs/labs.md'),
  },
  {
    title: 'Move to Skiff',
    pages: ['envtest', 'kwok', 'kind', 'k3s'].map((name) => `docs/migrate/from-${name}.md`),
  },
  { title: 'Test and build operators', pages: ['docs/testing.md', 'docs/client.md', 'docs/simulated-nodes.md', 'docs/scale.md', 'docs/csi.md'] },
  {
    title: 'Run clusters',
    pages: [
      ...['command-line', 'networking', 'ingress', 'storage', 'store', 'high-availability', 'autoscaling', 'scheduler'],
      ...['observability', 'pod-certificates', 'security', 'upgrading'],
    ].map((name) => `docs/${name}.md`),
  },
  { title: 'See inside', pages: ['ui', 'why', 'explain', 'time-travel', 'bundle'].map((name) => `docs/${name}.md`) },
  { title: 'Reference', pages: ['docs/reference/commands.md'] },
  {
    title: 'The project',
    pages: ['docs/how-it-works.md', 'docs/performance.md', 'docs/status.md', 'docs/cves.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
  },
  { title: 'More', pages: [] },
]

/** Pages outside of docs/, whose names would mean another page there. */
const renamed = { 'README.md': 'overview.html', 'CONTRIBUTING.md': 'contributing.html', 'SECURITY.md': 'reporting.html', 'CHANGELOG.md': 'changelog.html' }

/** Files that are copied as they are. */
const copied = /\.(png|svg)$/

/** @param root of the checkout. Returns the sections with the pages that exist, those of docs/reference and all others of docs/ added. */
export function readSections(root) {
  const all = fs
    .readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll(path.sep, '/')}`)
    .filter((name) => name.endsWith('.md'))
    .sort()
  const named = new Set(sections.flatMap(({ pages }) => pages))
  const rest = all.filter((page) => !named.has(page))
  const added = { Reference: rest.filter((page) => page.startsWith('docs/reference/')), More: rest.filter((page) => !page.startsWith('docs/reference/')) }
  return sections
    .map(({ title, pages }) => ({ title, pages: [...pages, ...(added[title] ?? [])].filter((page) => fs.existsSync(path.join(root, page))) }))
    .filter(({ pages }) => pages.length > 0)
}

/** The programs of docs/examples: one page a folder, with its files. */
export function readExamples(root) {
  const folder = path.join(root, 'docs/examples')
  if (!fs.existsSync(folder)) return []
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, files: fs.readdirSync(path.join(folder, name)).filter((file) => file.endsWith('.ts')) }))
}

/** The file of the site that a file of the repository becomes, with the anchor in it; undefined for files that are not published. */
export function outputOf(file) {
  if (Object.hasOwn(renamed, file)) return { file: renamed[file] }
  if (file === 'LICENSE') return { file: 'license.txt' }
  if (!file.startsWith('docs/')) return undefined
  const name = file.slice('docs/'.length)
  const [, example, source] = /^examples\/([^/]+)(?:\/([^/]+))?\/?$/.exec(name) ?? []
  if (example !== undefined) return { file: `examples/${example}/index.html`, ...(source === undefined ? {} : { anchor: slugOf(source) }) }
  if (name.endsWith('.md')) return { file: name.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html') }
  return copied.test(name) ? { file: name } : undefined
}

/** The anchor of a heading, as GitHub makes it; the second one of the same text has `-1` added. */
export function slugOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

/** The path from one file of the site to another. */
export function relativePath(from, to) {
  return posix.relative(posix.dirname(from), to) || posix.basename(to)
}
