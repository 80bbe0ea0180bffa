/** HA-06: `skiff join --install`, which gives what has joined to systemd. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/exitCodes'
import { runJoin } from '../layouts/join.ts'
import { unitText } from '../systemd/units.ts'
import { readJoinOptions } from './joinOptions.ts'
import { joinUnit } from './joinUnit.ts'

const joining = ['10.0.0.1:6443', '--token', 'abcdef.0123456789abcdef', '--discovery-token-ca-cert-hash', `sha256:${'0'.repeat(64)}`]
const self = ['/usr/bin/node', '/opt/skiff']

const units: readonly { readonly name: string; readonly args: readonly string[]; readonly command: string; readonly unit: string }[] = [
  { name: 'a node', args: joining, unit: 'skiff-kubelet.service', command: '"/usr/bin/node" "/opt/skiff" "kubelet" "--config=/k"' },
  {
    name: 'a control plane that joins',
    args: [...joining, '--control-plane', '--certificate-key', '0'.repeat(64), '--config-dir', '/etc/k'],
    unit: 'skiff-control-plane.service',
    command: '"/usr/bin/node" "/opt/skiff" "join" "--control-plane" "--config-dir=/etc/k" "--v=2"',
  },
  {
    name: 'a control plane that has joined',
    args: ['--control-plane', '-v', '4'],
    unit: 'skiff-control-plane.service',
    command: '"/usr/bin/node" "/opt/skiff" "join" "--control-plane" "--config-dir=/etc/kubernetes" "--v=4"',
  },
]
for (const { name, args, command, unit } of units) {
  test(`HA-06 the unit of ${name} starts it again whenever it ends, ends its children with it, and has no token`, async () => {
    const join = await readJoinOptions([...args, '--install'])
    assert.equal(join.runBy, 'unit')
    const found = joinUnit(join, ['--config=/k'], self)
    assert.equal(found.name, unit)
    const text = unitText(found)
    for (const line of [`ExecStart=${command}`, 'Restart=always', 'KillMode=mixed', 'Delegate=yes']) assert.ok(text.split('\n').includes(line), text)
    assert.doesNotMatch(text, /0123456789abcdef|0{64}/)
  })
}

test('HA-06 join --dry-run without --install is refused', async () =>
  assert.rejects(readJoinOptions([...joining, '--dry-run']), { exit: 'usage', message: /--dry-run needs --install/ }))

test('HA-06 join --install where systemd does not run is refused before anything is asked or written', {
  skip: existsSync('/run/systemd/system') ? 'systemd runs here' : false,
}, async () => {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-join-'))
  const args = [...joining, '--install', '--config-dir', directory, '--root-dir', directory]
  assert.equal(await runJoin(args, new AbortController().signal), exitCodes.unmetPrerequisite)
  assert.deepEqual(await fs.readdir(directory), [])
  await fs.rm(directory, { recursive: true })
})
