import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { formatElapsed } from '../core/formatElapsed.ts'
import { repositoryOf, withDefaultTag, withoutTag } from '../core/imageReference.ts'
import { pullFailure, sizeBucket } from './imageManager.ts'
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

const repositories = [
  ['nginx', 'docker.io/library/nginx'],
  ['team/app:1', 'docker.io/team/app'],
  ['index.docker.io/nginx', 'docker.io/library/nginx'],
  ['localhost/app:1@sha256:0123', 'localhost/app'],
  ['registry.example:5000/team/app:2', 'registry.example:5000/team/app'],
] as const
for (const [image, want] of repositories) test(`the repository of ${image}`, () => assert.equal(repositoryOf(image), want))

test('KUB-10 what a failed pull means, and how large an image is', () => {
  assert.equal(withoutTag('registry.example:5000/team/app'), 'registry.example:5000/team/app')
  assert.deepEqual(pullFailure('i', 'RegistryUnavailable: 503'), {
    reason: 'RegistryUnavailable',
    message: 'image pull failed for i because the registry is unavailable: 503',
  })
  assert.deepEqual(pullFailure('i', 'SignatureValidationFailed'), {
    reason: 'SignatureValidationFailed',
    message: 'image pull failed for i because the signature validation failed',
  })
  assert.deepEqual(pullFailure('i', 'not found'), { reason: 'ErrImagePull', message: 'not found' })
  assert.deepEqual([0, 1, 10 * 2 ** 20 + 1, 2 ** 40].map(sizeBucket), ['N/A', '0-10MB', '10MB-100MB', 'GT100GB'])
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
