/** The published package in the hands of a new user: what is in it, that its pages' links work, and a first cluster with nothing but npm. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { skiffVersion } from '#base/version'
import { withoutKubectl } from '../../support/kubectl.ts'
import { type InstalledPackage, installPackage, npm, npmCache } from '../../support/packedPackage.ts'

const root = path.resolve(import.meta.dirname, '../../..')
let project: InstalledPackage
before(() => {
  project = installPackage()
})
after(() => project.remove())

const filesBelow = (folder: string) =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))

test('X1 npm publish accepts the package, dry run', () => {
  const printed = npm(['publish', '--dry-run', '--json', '--ignore-scripts'], root)
  const { name, version, files } =
    Object.values(JSON.parse(printed) as Record<string, { name: string; version: string; files: { path: string }[] }>)[0] ?? assert.fail(printed)
  assert.deepEqual([name, version], ['skiff-kubernetes', skiffVersion])
  assert.ok(files.length > 100, `${files.length} files`)
})

test('X1 the package has the build, the licence, the changelog, the pages and the examples, and nothing of the sources', () => {
  const names = filesBelow(project.installed)
  for (const name of [
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'docs/client.md',
    'docs/examples/operator/backupOperator.ts',
    'dist/skiff.mjs',
    'dist/client.cjs',
  ])
    assert.ok(names.includes(name), name)
  const known = /^(bin|dist|docs)\/|^(package\.json|LICENSE|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md)$/
  assert.deepEqual(
    names.filter((name) => !known.test(name) || name.endsWith('.map') || /(^|\/)\./.test(name)),
    [],
  )
  const changes = fs.readFileSync(path.join(project.installed, 'CHANGELOG.md'), 'utf8')
  assert.ok(changes.includes(`\n## ${skiffVersion}`), `CHANGELOG.md has an entry for ${skiffVersion}`)
  const bytes = fs.statSync(project.tarball).size
  assert.ok(bytes < 8 * 2 ** 20, `the tarball has ${bytes} bytes`)
})

test('X1 every link of the packed pages leads to a packed file', () => {
  const pages = filesBelow(project.installed).filter((name) => name.endsWith('.md'))
  const broken = pages.flatMap((page) => {
    const text = fs.readFileSync(path.join(project.installed, page), 'utf8').replace(/```[\s\S]*?```/g, '')
    const targets = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target))
    return targets.filter((target) => !fs.existsSync(path.join(project.installed, path.dirname(page), target))).map((target) => `${page}: ${target}`)
  })
  assert.ok(pages.length > 8)
  assert.deepEqual(broken, [])
})

test('X1 npx skiff up starts a cluster in an empty folder with an empty HOME, and delete removes it', { skip: withoutKubectl, timeout: 180_000 }, () => {
  const home = path.join(project.folder, 'home')
  const empty = path.join(project.folder, 'empty')
  for (const folder of [home, empty]) fs.mkdirSync(folder)
  const { PATH, TMPDIR, SKIFF_TEST_RUN } = process.env
  const env = { PATH, TMPDIR, SKIFF_TEST_RUN, HOME: home, SKIFF_HOME: path.join(home, 'skiff'), npm_config_cache: npmCache() }
  const call = (program: string, ...args: string[]) => execFileSync(program, args, { cwd: empty, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  npm(['install', '--prefer-offline', '--no-audit', '--no-fund', project.tarball], empty, env)
  try {
    assert.match(call('npx', 'skiff', '--version'), new RegExp(`${skiffVersion}[\\s\\S]*v1\\.36\\.0`))
    call('npx', 'skiff', 'up', '--runtime', 'simulated')
    assert.match(call('kubectl', 'get', 'nodes', '--no-headers'), /^skiff-sim-1 +Ready +/)
    call('kubectl', 'create', 'deployment', 'web', '--image=example.com/web:1')
    assert.match(call('kubectl', 'rollout', 'status', 'deployment/web', '--timeout=60s'), /successfully rolled out/)
  } finally {
    call('npx', 'skiff', 'delete')
  }
  const left = filesBelow(home).filter((name) => !/^\.(npm|kube\/cache)\//.test(name))
  assert.deepEqual(left, ['.kube/config'])
  assert.doesNotMatch(fs.readFileSync(path.join(home, '.kube/config'), 'utf8'), /skiff/)
})
