import assert from 'node:assert/strict'
import { test } from 'node:test'
import { featureEnabled, featureGateFaults, featureGates, featureGateWarnings } from './featureGates.ts'

test('every feature gate of v1.36 is there once, and stages agree with defaults', () => {
  assert.equal(featureGates.size, 242)
  for (const [name, { stage, default: on, locked }] of featureGates) {
    if (stage === 'ALPHA') assert.equal(on, false, `${name} is alpha, so off`)
    if (stage === '') assert.equal(on, true, `${name} is stable, so on`)
    if (locked) assert.ok(stage === '' || stage === 'DEPRECATED', `${name} is locked, so stable or about to go`)
  }
})

for (const [what, settings, name, enabled] of [
  ['by default, a beta feature', {}, 'WatchList', true],
  ['by default, an alpha feature', {}, 'MemoryQoS', false],
  ['a feature that is asked for', { MemoryQoS: true }, 'MemoryQoS', true],
  ['an alpha feature, with all of them', { AllAlpha: true }, 'MemoryQoS', true],
  ['an alpha feature that is left out', { AllAlpha: true, MemoryQoS: false }, 'MemoryQoS', false],
  ['a beta feature, without any of them', { AllBeta: false }, 'WatchList', false],
  ['a stable feature, without any beta', { AllBeta: false }, 'NodeSwap', true],
  ['a feature of another version', {}, 'DefaultPodSysctls', false],
] as const) {
  test(`${what}: ${name} is ${enabled ? 'on' : 'off'}`, () => assert.equal(featureEnabled(settings, name), enabled))
}

for (const [settings, faults] of [
  [{ WatchList: false, MemoryQoS: true, NodeSwap: true }, []],
  [{ Nope: true }, ['unrecognized feature gate: Nope']],
  [{ NodeSwap: false }, ['cannot set feature gate NodeSwap to false, feature is locked to true']],
  [{ GitRepoVolumeDriver: true }, ['cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false']],
  [{ ContainerRestartRules: false }, ['RestartAllContainersOnContainerExits is enabled, but depends on features that are disabled: [ContainerRestartRules]']],
  [{ ContainerRestartRules: false, RestartAllContainersOnContainerExits: false }, []],
  [{ ClusterTrustBundleProjection: true }, ['ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]']],
] as const) {
  test(`${JSON.stringify(settings)}: ${faults.join() || 'fine'}`, () => assert.deepEqual(featureGateFaults(settings), faults))
}

test('gates that have no effect here are reported, gates that can be turned are not', () => {
  assert.deepEqual(featureGateWarnings({}), [])
  assert.deepEqual(featureGateWarnings({ MemoryQoS: true }, ['MemoryQoS']), [])
  assert.deepEqual(featureGateWarnings({ MemoryQoS: true, WatchList: true, EventedPLEG: true }, ['MemoryQoS']), [
    'Feature gates without effect here, these features stay as v1.36 has them by default: EventedPLEG=true',
  ])
  assert.deepEqual(featureGateWarnings({ NodeSwap: true, KMSv1: false }), [
    'Warning: setting GA feature gate NodeSwap=true. It will be removed in a future release.',
    'Warning: setting deprecated feature gate KMSv1=false. It will be removed in a future release.',
  ])
  const [many = ''] = featureGateWarnings({ AllAlpha: true }, ['MemoryQoS'])
  assert.match(many, /EventedPLEG=true/)
  assert.doesNotMatch(many, /MemoryQoS|AllAlpha/)
})
