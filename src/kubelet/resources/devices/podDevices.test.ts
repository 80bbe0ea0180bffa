import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDevices, renderDevices } from './podDevices.ts'

const known = [
  {
    name: 'without pods',
    text: '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}},"Checksum":3952659280}',
  },
  {
    name: 'with a pod',
    text: '{"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283185c3","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum":3660592824}',
  },
]
for (const { name, text } of known) {
  test(`KUB-15 a device checkpoint that upstream wrote is read and written alike: ${name}`, () => {
    const { devices, registered } = parseDevices(text)
    assert.equal(renderDevices(devices, registered), text)
    assert.throws(() => parseDevices(text.replace(/"Checksum":\d+/, '"Checksum":1')), /checkpoint is corrupted/)
  })
}

test('KUB-15 what a plugin answered survives in the checkpoint', () => {
  const { devices } = parseDevices(known[1]!.text)
  assert.deepEqual(devices.all()[0]?.allocation, { envs: { NVIDIA_VISIBLE_DEVICES: 'tegra' }, mounts: [], devices: [], annotations: {}, cdiDevices: [] })
})
