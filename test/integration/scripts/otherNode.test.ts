/** scripts/otherNode.mjs with a registry that fails, sends half a file, or sends the wrong one: a stand-in for npm on the PATH. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../../..')
const release = '24.9.9'
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'other-node-'))
after(() => fs.rmSync(directory, { recursive: true }))

/** Packs a script in place of the binary, as the registry's package has it. MODE says what goes wrong. */
const npm = `#!/bin/sh
set -e
echo "$1" >>"$CALLS"
[ "$MODE" != offline ] || { echo "npm error network request to https://registry failed" >&2; exit 1; }
[ "$1" != view ] || { echo '["24.1.0", "${release}", "25.0.0"]'; exit 0; }
while [ "$1" != --pack-destination ]; do shift; done
work=$(mktemp -d)
mkdir -p "$work/package/bin"
version=${release}; [ "$MODE" != other ] || version=24.1.0
printf '#!/bin/sh\\necho v%s\\n' "$version" >"$work/package/bin/node"
chmod +x "$work/package/bin/node"
tar czf "$2/node.tgz" -C "$work" package
[ "$MODE" != cut ] || truncate -s 60 "$2/node.tgz"
rm -r "$work"
echo node.tgz
`
const programs = path.join(directory, 'bin')
fs.mkdirSync(programs)
fs.writeFileSync(path.join(programs, 'npm'), npm, { mode: 0o755 })

let caches = 0
const newCache = () => path.join(directory, `cache-${caches++}`)
const binaryIn = (cache: string) => path.join(cache, release, 'node')

function run(cache: string, mode = 'good', version = '24') {
  const calls = `${cache}.calls`
  fs.writeFileSync(calls, '')
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, SKIFF_NODE_CACHE: cache, MODE: mode, CALLS: calls }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/otherNode.mjs', version, 'node', '--version'], { cwd: root, env, encoding: 'utf8' })
  return { status, stdout, stderr, calls: fs.readFileSync(calls, 'utf8').split('\n').filter(Boolean) }
}
const kept = (cache: string) => (fs.existsSync(cache) ? fs.readdirSync(cache) : [])

test('the newest release of a line is fetched once, and kept', () => {
  const cache = newCache()
  const first = run(cache)
  assert.deepEqual([first.status, first.calls, kept(cache)], [0, ['view', 'pack'], [release]], first.stderr)
  assert.ok(first.stdout.endsWith(`v${release}\n`))
  assert.deepEqual(run(cache).calls, ['view'])
})

const failures = [
  { mode: 'offline', version: release, want: /^Node\.js 24\.9\.9: node-\S+ could not be fetched: npm error network request to https:\/\/registry failed$/m },
  { mode: 'cut', version: '24', want: /^Node\.js 24\.9\.9: node-\S+ could not be fetched: (gzip|tar): /m },
  { mode: 'other', version: '24', want: /could not be fetched: the package holds another binary \(it says "v24\.1\.0"\)$/m },
]
for (const { mode, version, want } of failures) {
  test(`a download that fails leaves nothing and says why, the registry is ${mode}`, () => {
    const cache = newCache()
    const { status, stderr } = run(cache, mode, version)
    assert.equal(status, 6, stderr)
    assert.match(stderr, want)
    assert.ok(!/ at .*otherNode/.test(stderr), stderr)
    assert.deepEqual(kept(cache), [])
    assert.equal(run(cache, 'good', version).status, 0)
  })
}

const damages: { name: string; damage: (file: string) => void }[] = [
  { name: 'it was cut', damage: (file) => fs.truncateSync(file, 5) },
  { name: 'it was changed', damage: (file) => fs.appendFileSync(file, '# more\n') },
  { name: 'it is gone', damage: (file) => fs.rmSync(file) },
  { name: 'it is of another release', damage: (file) => fs.writeFileSync(file, '#!/bin/sh\necho v1.0.0\n') },
]
for (const { name, damage } of damages) {
  test(`a kept binary that is damaged is fetched again, ${name}`, () => {
    const cache = newCache()
    assert.equal(run(cache).status, 0)
    const good = fs.readFileSync(binaryIn(cache))
    damage(binaryIn(cache))
    const { status, stdout, calls } = run(cache)
    assert.deepEqual([status, calls], [0, ['view', 'pack']])
    assert.match(stdout, /24\.9\.9 is damaged \(.+\); fetching it again/)
    assert.deepEqual(fs.readFileSync(binaryIn(cache)), good)
  })
}

test('without a registry the newest kept release of the line is used', () => {
  const cache = newCache()
  assert.equal(run(cache).status, 0)
  const { status, stdout } = run(cache, 'offline')
  assert.deepEqual([status, stdout], [0, `v${release}\n`])
})
