import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyToPath, VolumeProjection } from '#api/gen/types/core.v1'
import { overlappingPathWarnings } from './volumeWarnings.ts'

const items = (paths: readonly string[]): KeyToPath[] => paths.map((path) => ({ key: 'k', path }))
const ofConfigMap = (paths: readonly string[]): string[] => overlappingPathWarnings([{ name: 'v', configMap: { name: 'm', items: items(paths) } }])
const ofSources = (sources: VolumeProjection[]): string[] => overlappingPathWarnings([{ name: 'v', projected: { sources } }])

test('POD-01 each path with every earlier one it hides or lies in, in their order', () => {
  const pairs = ofConfigMap(['a/b', 'a-b', 'a/b/c', '', 'a//', 'a/b', '/a']).map((warning) =>
    warning.replace('volume "v" (ConfigMap "m"): overlapping paths: ', ''),
  )
  assert.deepEqual(pairs, ['"a/b/c" with "a/b"', '"a" with "a/b"', '"a" with "a/b/c"', '"a/b" with "a/b"', '"a/b" with "a/b/c"', '"a/b" with "a"'])
})

test('POD-01 the warnings of a projected volume name both sources', () => {
  const podCertificate = { signerName: 's', keyType: 'RSA3072', certificateChainPath: 't/c', keyPath: 'x', credentialBundlePath: 't' }
  const sources = [{}, { secret: { name: 's', items: items(['t']) } }, { serviceAccountToken: { path: 'x' } }, { podCertificate }]
  assert.deepEqual(ofSources(sources), [
    'volume "v" (Projected) has no sources provided',
    'volume "v" (Projected): overlapping paths: "t/c" (PodCertificate chain) with "t" (Secret "s")',
    'volume "v" (Projected): overlapping paths: "x" (PodCertificate key) with "x" (ServiceAccountToken)',
    'volume "v" (Projected): overlapping paths: "t" (PodCertificate credential bundle) with "t" (Secret "s")',
    'volume "v" (Projected): overlapping paths: "t" (PodCertificate credential bundle) with "t/c" (PodCertificate chain)',
  ])
})

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const attacks: Readonly<Record<string, () => string[]>> = {
  'many sources': () => ofSources(numbers(100_000).map((index) => ({ serviceAccountToken: { path: `p${index}` } }))),
  'empty sources': () => ofSources(numbers(1_000_000).map(() => ({}))),
  'many items': () => ofConfigMap(numbers(200_000).map((index) => `p${index}`)),
  'many items of one path': () => ofConfigMap(numbers(200_000).map(() => 'p')),
  'many items in one folder': () => ofConfigMap([...numbers(200_000).map((index) => `p/${index}`), 'p']),
  'deep paths': () => ofConfigMap(numbers(4000).map((index) => `${'a/'.repeat(1400)}${index}`)),
  'paths in each other': () => ofConfigMap(numbers(1400).map((index) => `a${'/a'.repeat(index)}`)),
  'slashes in a row': () => ofConfigMap([`${'/'.repeat(1_000_000)}a/`]),
  'long paths': () => ofConfigMap(numbers(20).map(() => 'x'.repeat(100_000))),
}
for (const [name, warn] of Object.entries(attacks)) {
  test(`POD-01 ${name}: the warnings are found soon, and are few and short`, () => {
    const began = performance.now()
    const warnings = warn()
    assert.ok(performance.now() - began < 5000)
    assert.ok(warnings.length <= 201 && warnings.join('').length < 4_000_000)
  })
}
