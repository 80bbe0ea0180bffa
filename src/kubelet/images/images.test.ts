import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { formatElapsed } from './imageManager.ts'
import { credentialsFor, withDefaultTag } from './imageReference.ts'
import { ociTar, tar } from './ociTar.ts'

const tags = [
  ['nginx', 'nginx:latest'],
  ['nginx:1.25', 'nginx:1.25'],
  ['registry.example:5000/team/app', 'registry.example:5000/team/app:latest'],
  [
    'app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
    'app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
  ],
  ['Not An Image', undefined],
  ['UPPER/case', 'UPPER/case:latest'],
  ['', undefined],
] as const
for (const [image, want] of tags) test(`the image name ${JSON.stringify(image)}`, () => assert.equal(withDefaultTag(image), want))

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const auth = Buffer.from('me:secret:with:colons').toString('base64')

test('KUB-10 pull secrets are matched by registry, the longest path first', () => {
  const secrets = [
    { '.dockerconfigjson': encode({ auths: { 'registry.example': { username: 'all', password: 'x' }, 'https://registry.example/team': { auth } } }) },
  ]
  assert.deepEqual(credentialsFor('registry.example/team/app:1', secrets), { username: 'me', password: 'secret:with:colons' })
  assert.deepEqual(credentialsFor('registry.example/other:1', secrets), { username: 'all', password: 'x' })
  assert.equal(credentialsFor('nginx', secrets), undefined)
  assert.deepEqual(credentialsFor('nginx', [{ '.dockercfg': encode({ 'https://index.docker.io/v1/': { auth } }) }]), {
    username: 'me',
    password: 'secret:with:colons',
  })
  assert.equal(credentialsFor('nginx', [{ '.dockerconfigjson': 'not base64 of JSON' }]), undefined)
})

const durations = [
  [12, '12ms'],
  [1234, '1.234s'],
  [10_000, '10s'],
  [80_000, '1m20s'],
  [300_000, '5m0s'],
  [3_661_000, '1h1m1s'],
] as const
for (const [ms, text] of durations) test(`${ms} ms is ${text}`, () => assert.equal(formatElapsed(ms), text))

test('tar is read by tar', { skip: spawnSync('tar', ['--version']).error ? 'no tar here' : false }, () => {
  const archive = tar([
    { path: 'a/', type: 'directory' },
    { path: 'a/b', type: 'file', data: Buffer.from('hello'), mode: 0o755 },
    { path: 'c', type: 'symlink', target: 'a/b' },
  ])
  const listed = spawnSync('tar', ['tvf', '-'], { input: archive, encoding: 'utf8' })
  assert.equal(listed.status, 0)
  assert.deepEqual(
    listed.stdout
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, 10), line.replace(/.*\d\d:\d\d /, '')]),
    [
      ['drwxr-xr-x', 'a/'],
      ['-rwxr-xr-x', 'a/b'],
      ['lrwxrwxrwx', 'c -> a/b'],
    ],
  )
})

test('an image is the same bytes each time', () => {
  const make = () => ociTar({ names: ['x/y:1'], command: ['/run'], files: [{ path: 'run', type: 'file', data: Buffer.from('x') }] })
  assert.ok(make().equals(make()))
})
