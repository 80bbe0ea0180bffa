/** What a kubelet finds in its plugins_registry, and what its refusal does. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { abortScope } from '#base/abortScope'
import { noLog } from '#base/log'
import { pluginRegistrationProto } from '#grpc/proto/pluginRegistration'
import { connectUnixService } from '#grpc/unixService'
import { registerWithKubelet } from './csiRegistration.ts'

test('STO-11 a kubelet finds the name, the socket and the version of a driver in its registry, a refusal ends the program, and its end removes the socket', async () => {
  const registry = mkdtempSync(path.join(os.tmpdir(), 'csi-registry-'))
  using scope = abortScope()
  const socket = path.join(registry, 'files.example.com-reg.sock')
  const kubelet = connectUnixService(pluginRegistrationProto, 'pluginregistration.Registration', `unix:${socket}`)
  try {
    {
      await using _registration = await registerWithKubelet({ name: 'files.example.com', endpoint: '/plugins/files/csi.sock', registry }, noLog, scope)
      const { type, name, endpoint, supportedVersions } = await kubelet.call<Record<string, unknown>>('GetInfo', {}, 5000)
      assert.deepEqual([type, name, endpoint, supportedVersions], ['CSIPlugin', 'files.example.com', '/plugins/files/csi.sock', ['1.0.0']])
      await kubelet.call('NotifyRegistrationStatus', { pluginRegistered: true, error: '' }, 5000)
      assert.equal(scope.signal.aborted, false)
      await kubelet.call('NotifyRegistrationStatus', { pluginRegistered: false, error: 'no such version' }, 5000)
      assert.match(String(scope.signal.reason), /the kubelet refuses the driver: no such version/)
      kubelet.close()
    }
    assert.equal(existsSync(socket), false)
  } finally {
    kubelet.close()
    rmSync(registry, { recursive: true })
  }
})
