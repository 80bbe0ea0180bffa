/** Volumes in which containers leave what the kubelet should not open: pipes, links that lead out, directories that turn into links meanwhile. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { VirtualClock } from '#base/virtualClock'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import { podDirectory } from '../core/podDirectory.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { annotationKeys } from '../core/runtimeLabels.ts'
import { withTerminationMessages } from '../pods/terminationMessage.ts'
import { volumeFile } from '../pods/volumeFile.ts'
import { systemLog } from '../server/systemLogs.ts'
import { setVolumeOwnership } from './ownership.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const isRoot = process.getuid?.() === 0

async function inTemporary(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'hostile-')))
  try {
    await run(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const atRoot = (directory: string) => ({ path: (path: string) => join(directory, path) }) as KubeletHost

/** Eight things of each kind: more than there are threads for files, each of which a pipe would keep. */
const many = 8
const kinds: readonly { name: string; make(path: string): Promise<unknown> }[] = [
  { name: 'a pipe', make: async (path) => execFileSync('mkfifo', [path]) },
  { name: 'a link to a file outside', make: (path) => symlink('/etc/passwd', path) },
  { name: 'a directory', make: (path) => mkdir(path) },
]

for (const { name, make } of kinds) {
  test(`KUB-09 ${name} in place of the termination log gives no message`, () =>
    inTemporary(async (directory) => {
      const records = await Promise.all(
        Array.from({ length: many }, async (_, i): Promise<ContainerRecord> => {
          await make(join(directory, `log${i}`))
          const status = { annotations: { [annotationKeys.terminationMessagePath]: '/end' }, mounts: [{ containerPath: '/end', hostPath: `/log${i}` }] }
          return { id: `c${i}`, state: 'exited', exitCode: 0, status } as unknown as ContainerRecord
        }),
      )
      const context = { host: atRoot(directory) } as KubeletContext
      const { containers } = await withTerminationMessages(context, { containers: records } as unknown as PodRuntimeStatus, new Map())
      assert.deepEqual(
        containers.map(({ message }) => message),
        Array.from({ length: many }, () => undefined),
      )
    }))

  test(`KUB-11 ${name} in place of an environment file is refused`, () =>
    inTemporary(async (directory) => {
      await mkdir(join(directory, 'volume'))
      const volumes = new Map([['v', { name: 'v', plugin: 'p', path: '/volume', block: false, readOnly: false }]])
      await make(join(directory, 'volume/env'))
      const read = () => assert.rejects(volumeFile({ host: atRoot(directory) }, volumes, 'v', 'env'), /is no regular file|is not in the volume/)
      await Promise.all(Array.from({ length: many }, read))
    }))
}

test('KUB-09 a termination message out of a log of one long line is its last 2,048 bytes', async () => {
  let largest = 0
  const keptBytes = () => {
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  async function* logs() {
    const base = keptBytes()
    for (let i = 0; i < 200; i++) {
      yield Buffer.alloc(1 << 20, 'x')
      if (i % 20 === 19) largest = Math.max(largest, keptBytes() - base)
    }
    yield Buffer.from('the end')
  }
  const annotations = { [annotationKeys.terminationMessagePath]: '/end', [annotationKeys.terminationMessagePolicy]: 'FallbackToLogsOnError' }
  const record = { id: 'c', state: 'exited', exitCode: 1, status: { annotations, mounts: [] } } as unknown as ContainerRecord
  const context = { clock: new VirtualClock(), host: atRoot('/nonexistent'), runtime: { logs } } as unknown as KubeletContext
  const { containers } = await withTerminationMessages(context, { containers: [record] } as unknown as PodRuntimeStatus, new Map())
  const message = containers[0]?.message ?? ''
  assert.deepEqual([message.length, message.endsWith('the end')], [2048, true])
  // The collector frees the memory of buffers in the background: two rounds of them may still count.
  assert.ok(largest < 64 << 20, String(largest))
})

test('KUB-11 an environment file is read up to its end', () =>
  inTemporary(async (directory) => {
    await writeFile(join(directory, 'env'), "A='b'\n")
    const volumes = new Map([['v', { name: 'v', plugin: 'p', path: '/', block: false, readOnly: false }]])
    assert.equal(await volumeFile({ host: atRoot(directory) }, volumes, 'v', 'env'), "A='b'\n")
  }))

test('KUB-17 a pipe among the logs of a node is not opened', () =>
  inTemporary(async (directory) => {
    await mkdir(join(directory, 'var/log'), { recursive: true })
    execFileSync('mkfifo', [join(directory, 'var/log/pipe')])
    for (let i = 0; i < many; i++) await assert.rejects(systemLog(atRoot(directory), ['pipe']), { code: 404 })
  }))

test('KUB-11 files outside of a volume keep their owners and modes when a directory becomes a link during the walk', { skip: !isRoot }, () =>
  inTemporary(async (directory) => {
    const [root, outside] = [join(directory, 'volume'), join(directory, 'outside')]
    await mkdir(outside)
    await writeFile(join(outside, 'secret'), '', { mode: 0o600 })
    for (const name of ['a', 'b', 'c']) {
      await mkdir(join(root, name), { recursive: true })
      await writeFile(join(root, name, 'secret'), '')
      await chmod(join(root, name, 'secret'), 0o600)
    }
    // As a container does it that runs meanwhile: at the first file that is changed, every directory.
    let swapped: Promise<unknown> | undefined
    const swap = async () => {
      for (const name of await readdir(root)) {
        await rename(join(root, name), join(directory, `was-${name}`))
        await symlink(outside, join(root, name))
      }
    }
    await setVolumeOwnership(root, {
      fsGroup: 4321,
      onFile: () => {
        swapped ??= swap()
      },
    })
    await swapped
    const { gid, mode } = await stat(join(outside, 'secret'))
    assert.deepEqual([gid, mode & 0o7777, (await stat(outside)).gid], [0, 0o600, 0])
  }),
)

for (const uid of ['', '.', '..', '../../etc', 'a/b', 'a\0b'])
  test(`KUB-16 the uid ${JSON.stringify(uid)} names no directory of a pod`, () =>
    assert.throws(() => podDirectory('/var/lib/kubelet', uid), /cannot be the name/))

test('KUB-11 a walk that fails ends only when no file of the volume is open any more', { skip: !isRoot }, () =>
  inTemporary(async (directory) => {
    for (const name of ['a', 'b', 'c']) await mkdir(join(directory, name))
    for (let i = 0; i < 50; i++) await writeFile(join(directory, `file${i}`), '')
    for (let round = 0; round < 20; round++) {
      const walk = setVolumeOwnership(directory, {
        fsGroup: process.getgid?.() ?? 0,
        onFile: () => {
          throw new Error('refused')
        },
      })
      await assert.rejects(walk, { message: 'refused' })
      const open = readdirSync('/proc/self/fd').flatMap((fd) => linkOf(`/proc/self/fd/${fd}`))
      assert.deepEqual(
        open.filter((path) => path.startsWith(directory)),
        [],
      )
    }
  }),
)

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    return []
  }
}
