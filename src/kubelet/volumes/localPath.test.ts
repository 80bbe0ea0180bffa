/** Directories of local-path volumes on this machine: created for the provisioner's volumes only, and removed without touching anything outside of them. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Node, PersistentVolume, Pod } from '#api/gen/types/core.v1'
import { removalChanges } from '#api/helpers/localPath'
import type { Clock } from '#base/clock'
import type { VirtualClock } from '#base/virtualClock'
import { makeLocalPath, removeLocalPath } from './localPath.ts'
import { createLocalPathRemovals } from './localPathRemovals.ts'
import { onMachine, type TestMachine } from './testMachine.ts'
import { createVolumeManager } from './volumeManager.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const volume = 'pvc-2b0d7b3d-3d2b-4b0c-8f8e-7d0b6a1f9c11'
const pathOf = ({ root }: TestMachine, name = volume) => `${root}/local-path/${name}`
const isThere = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )
const slice = { signal: new AbortController().signal, sliceMs: 60_000, exclusive: <T>(work: () => Promise<T>) => work() }
/** One slice of a removal; whether nothing is left. */
const remove = async ({ root, host }: TestMachine, sliceMs = 60_000) =>
  (await removeLocalPath({ host, rootDirectory: root }, volume, { ...slice, sliceMs })) === 'removed'

function podWith(uid = 'u-1', readOnly = false): Pod {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'claim', readOnly } }]
  const containers = [{ name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid }, status: {} },
    spec: { nodeName: 'node-1', containers, volumes },
  }
}

interface VolumeSettings {
  readonly name?: string
  readonly path?: string
  readonly provisioner?: string
  readonly mountOptions?: string[]
}

/** Adds a volume as the provisioner makes it, bound to the pod's claim. */
function bindVolume(machine: TestMachine, { name = volume, path = pathOf(machine, name), provisioner = 'skiff.dev/local-path', mountOptions }: VolumeSettings) {
  const metadata = { name: 'claim', namespace: 'n', uid: 'uid-claim' }
  const claimRef = { ...metadata, kind: 'PersistentVolumeClaim' }
  const spec: PersistentVolume['spec'] = { local: { path }, capacity: { storage: '1Gi' }, claimRef, ...(mountOptions ? { mountOptions } : {}) }
  const annotations = { 'pv.kubernetes.io/provisioned-by': provisioner }
  machine.objects.set(`PersistentVolume/${name}`, { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name, annotations }, spec, status: {} })
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: { volumeName: name }, status: { phase: 'Bound', capacity: spec.capacity } }
  machine.objects.set('PersistentVolumeClaim/claim', claim)
}

test('STO-06 the first mount of a provisioned volume creates its directory for all users, and later mounts keep its content', { skip }, async () => {
  await onMachine(async (machine) => {
    bindVolume(machine, {})
    const mask = process.umask(0o077)
    try {
      const mounted = await createVolumeManager(machine.context).setUpPod(podWith())
      await writeFile(`${mounted.get('data')?.path}/file`, 'kept')
    } finally {
      process.umask(mask)
    }
    assert.equal((await stat(pathOf(machine))).mode & 0o7777, 0o777)
    assert.deepEqual(await readdir(`${machine.root}/local-path`), [volume])
    // A later kubelet, and another pod.
    const again = createVolumeManager(machine.context)
    await again.tearDownPod('u-1')
    const mounted = await again.setUpPod(podWith('u-2'))
    assert.equal(await readFile(`${mounted.get('data')?.path}/file`, 'utf8'), 'kept')
    await again.tearDownPod('u-2')
    assert.equal(await readFile(`${pathOf(machine)}/file`, 'utf8'), 'kept')
  })
})

const foreign: readonly (readonly [what: string, settings: (machine: TestMachine) => VolumeSettings])[] = [
  ['of another provisioner', () => ({ provisioner: 'example.com/other' })],
  ['with the path of another volume', (machine) => ({ path: pathOf(machine, 'pvc-other') })],
  ['with a path below its directory', (machine) => ({ path: `${pathOf(machine)}/below` })],
  ['with a path outside', ({ root }) => ({ path: `${root}/elsewhere/${volume}` })],
  ['with a name that the provisioner does not give', () => ({ name: 'data' })],
]
for (const [what, settings] of foreign) {
  test(`STO-06 the kubelet creates no directory for a volume ${what}`, { skip }, async () => {
    await onMachine(async (machine) => {
      bindVolume(machine, settings(machine))
      await assert.rejects(createVolumeManager(machine.context).setUpPod(podWith()))
      assert.match(machine.events.join('\n'), /^Warning FailedMount .*ENOENT/)
      assert.deepEqual([await isThere(`${machine.root}/local-path`), await isThere(`${machine.root}/elsewhere`)], [false, false])
    })
  })
}

test('KUB-01 the ephemeral storage of a node is the filesystem of its kubelet', { skip }, async () => {
  await onMachine(async ({ root, host }) => {
    await mkdir(`${root}/kubelet`)
    await host.mounter.mount({ source: 'tmpfs', target: `${root}/kubelet`, filesystem: 'tmpfs', options: ['size=16m'] })
    assert.equal((await host.machine(`${root}/kubelet`)).ephemeralStorageBytes, 16 * 2 ** 20)
  })
})

test('STO-06 a link in the place of a directory is refused, and nothing is created behind it', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(`${machine.root}/local-path`)
    await symlink(`${machine.root}/target`, pathOf(machine))
    await assert.rejects(makeLocalPath({ host: machine.host, rootDirectory: machine.root }, volume), /is not a directory/)
    assert.equal(await isThere(`${machine.root}/target`), false)
    assert.equal(await remove(machine), true)
    assert.equal(await isThere(pathOf(machine)), false)
  })
})

test('STO-06 a directory that an ended kubelet left unfinished is completed', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(`${pathOf(machine)}.new`, { recursive: true, mode: 0o700 })
    await makeLocalPath({ host: machine.host, rootDirectory: machine.root }, volume)
    assert.equal((await stat(pathOf(machine))).mode & 0o7777, 0o777)
    assert.deepEqual(await readdir(`${machine.root}/local-path`), [volume])
  })
})

test('STO-06 mount options of a local volume take effect, and a volume with an option that the kernel refuses is not mounted', { skip }, async () => {
  await onMachine(async (machine) => {
    const { context, host } = machine
    const optionsOf = async (path: string | undefined) => (await host.mounter.list()).findLast(({ mountPoint }) => mountPoint === path)?.options ?? []
    bindVolume(machine, { mountOptions: ['noexec', 'nodev'] })
    const manager = createVolumeManager(context)
    const path = (await manager.setUpPod(podWith())).get('data')?.path
    const options = await optionsOf(path)
    assert.deepEqual(
      ['noexec', 'nodev', 'ro'].map((option) => options.includes(option)),
      [true, true, false],
    )
    const readOnly = await optionsOf((await manager.setUpPod(podWith('u-2', true))).get('data')?.path)
    assert.deepEqual(
      ['noexec', 'nodev', 'ro'].map((option) => readOnly.includes(option)),
      [true, true, true],
    )
    const mounts = await machine.mountsBelow()
    const mount: typeof host.mounter.mount = async (request) =>
      request.options?.includes('remount') ? Promise.reject(new Error('bad option')) : host.mounter.mount(request)
    const refusing = createVolumeManager({ ...context, host: { ...host, mounter: { ...host.mounter, mount } } })
    await assert.rejects(refusing.setUpPod(podWith('u-3')))
    assert.deepEqual(await machine.mountsBelow(), mounts)
  })
})

test('STO-05 a removed directory takes links and mounts inside along, but not what is behind them', { skip }, async () => {
  await onMachine(async (machine) => {
    const { root, host } = machine
    const path = pathOf(machine)
    await mkdir(`${path}/a/b`, { recursive: true })
    await mkdir(`${path}/mounted`)
    for (const outside of ['behind-link', 'behind-mount']) {
      await mkdir(`${root}/${outside}`)
      await writeFile(`${root}/${outside}/file`, 'kept')
    }
    await symlink(`${root}/behind-link`, `${path}/a/link`)
    await host.mounter.mount({ source: `${root}/behind-mount`, target: `${path}/mounted`, options: ['bind'] })
    assert.equal(await remove(machine), true)
    assert.deepEqual(await readdir(`${root}/local-path`), [])
    assert.deepEqual([await readFile(`${root}/behind-link/file`, 'utf8'), await readFile(`${root}/behind-mount/file`, 'utf8')], ['kept', 'kept'])
    assert.equal(await remove(machine), true)
  })
})

/** Exchanges a directory for a link to the outside, and back, as fast as it can. Resolves once it has begun. */
async function startExchanging(path: string, outside: string): Promise<ChildProcess> {
  const script = `
    const fs = require('fs')
    // The directory is renamed meanwhile.
    process.chdir('${path}')
    process.stdout.write('begun')
    while (fs.existsSync('d') || fs.existsSync('e')) {
      try {
        fs.renameSync('d', 'e')
        fs.symlinkSync('${outside}', 'd')
        fs.unlinkSync('d')
        fs.renameSync('e', 'd')
      } catch {}
    }`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  return child
}

test('STO-05 a process that exchanges a directory for a link during the removal loses nothing outside', { skip }, async () => {
  await onMachine(async (machine) => {
    const outside = `${machine.root}/outside`
    await mkdir(outside)
    for (let i = 0; i < 500; i++) await writeFile(`${outside}/${i}`, '')
    for (let round = 0; round < 5; round++) {
      const path = pathOf(machine)
      await mkdir(`${path}/d`, { recursive: true })
      for (let i = 0; i < 500; i++) await writeFile(`${path}/d/${i}`, '')
      const exchanging = await startExchanging(path, outside)
      const ended = once(exchanging, 'exit')
      try {
        // What appears while rm works makes it fail; the caller tries again.
        for (;;) if (await remove(machine).catch(() => false)) break
      } finally {
        exchanging.kill('SIGKILL')
        await ended
      }
      assert.equal((await readdir(outside)).length, 500)
    }
  })
})

test('STO-05 a directory stays while a pod has the volume mounted', { skip }, async () => {
  await onMachine(async (machine) => {
    bindVolume(machine, {})
    const manager = createVolumeManager(machine.context)
    await manager.setUpPod(podWith())
    assert.equal(await remove(machine), false)
    assert.equal(await isThere(pathOf(machine)), true)
    await manager.tearDownPod('u-1')
    assert.equal(await remove(machine), true)
    assert.equal(await isThere(pathOf(machine)), false)
  })
})

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

async function until(check: () => boolean): Promise<void> {
  while (!check()) await turn()
}

/** Runs a test with the removals of a node; `annotate` delivers the Node with these requests. `manager` mounts volumes of the same node. */
async function withRemovals(
  machine: TestMachine,
  run: (annotate: (...names: string[]) => void, clock: VirtualClock) => Promise<void>,
  manager = createVolumeManager(machine.context),
): Promise<void> {
  const removals = createLocalPathRemovals(machine.context, manager)
  const stop = new AbortController()
  const running = removals.run(stop.signal)
  const annotate = (...names: string[]) => {
    const annotations = removalChanges(names, []) as Record<string, string>
    removals.noticed({ metadata: { name: 'node-1', uid: 'uid-node', annotations } } as Node)
  }
  try {
    await run(annotate, machine.context.clock as VirtualClock)
  } finally {
    stop.abort(new Error('the test is over'))
    await running
  }
}

const tookOff = (name: string) => `Node/node-1 {"metadata":{"annotations":{"local-path.skiff.dev/${name}":null}}}`

test('STO-05 a requested removal is reported by taking the annotation off, and one that is in use is tried again', { skip }, async () => {
  await onMachine(async (machine) => {
    bindVolume(machine, {})
    const manager = createVolumeManager(machine.context)
    await manager.setUpPod(podWith())
    await mkdir(pathOf(machine, 'pvc-free'))
    await withRemovals(machine, async (annotate, clock) => {
      annotate(volume, 'pvc-free', 'pvc-absent')
      await until(() => machine.patches.length === 1)
      const both = '{"metadata":{"annotations":{"local-path.skiff.dev/pvc-free":null,"local-path.skiff.dev/pvc-absent":null}}}'
      assert.deepEqual(machine.patches.splice(0), [`Node/node-1 ${both}`])
      annotate(volume)
      await manager.tearDownPod('u-1')
      await until(() => {
        void clock.advance(1_000)
        return machine.patches.length > 0
      })
      assert.equal(machine.patches[0], tookOff(volume))
    })
    assert.deepEqual(await readdir(`${machine.root}/local-path`), [])
    assert.deepEqual(machine.events, [])
  })
})

test('STO-05 a removal that fails is recorded once and tried again', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(pathOf(machine), { recursive: true })
    const { host } = machine
    let attempts = 0
    const run: typeof host.exec.run = async (program, args, options) => {
      if (program !== 'rm' || ++attempts > 3) return host.exec.run(program, args, options)
      return { code: 1, stdout: '', stderr: 'rm: cannot remove: Operation not permitted\n', timedOut: false }
    }
    const context = { ...machine.context, host: { ...host, exec: { ...host.exec, run } } }
    await withRemovals({ ...machine, context }, async (annotate, clock) => {
      annotate(volume)
      await until(() => {
        void clock.advance(1_000)
        return machine.patches.length > 0
      })
    })
    assert.equal(attempts, 4)
    const why = `failed to remove ${pathOf(machine)}: rm: cannot remove: Operation not permitted`
    assert.deepEqual(machine.events, [`Warning VolumeFailedDelete failed to delete volume ${volume}: ${why}`])
    assert.deepEqual(machine.patches, [tookOff(volume)])
  })
})

test('STO-05 annotations that name no volume of the provisioner are ignored', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(`${machine.root}/local-path`)
    await mkdir(`${machine.root}/pods`)
    await withRemovals(machine, async (annotate) => {
      annotate('..', '../pods', 'pvc-../../pods', 'PVC-1', '', 'data', volume)
      await until(() => machine.patches.length > 0)
    })
    assert.deepEqual(machine.patches, [tookOff(volume)])
    assert.deepEqual(await readdir(machine.root), ['local-path', 'pods'])
  })
})

test('STO-05 a removal is reported at once, by a clock that moves on between two looks at it', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(pathOf(machine), { recursive: true })
    let looks = 0
    const { clock } = machine.context
    const moving: Clock = {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs() + looks++ / 1_000,
      sleep: (ms, signal) => clock.sleep(ms, signal),
      timer: (ms, fn) => clock.timer(ms, fn),
      turn: () => clock.turn(),
    }
    await withRemovals({ ...machine, context: { ...machine.context, clock: moving } }, async (annotate) => {
      annotate(volume)
      // rm is a process, on a machine that may be busy.
      const deadline = performance.now() + 10_000
      while (machine.patches.length === 0 && performance.now() < deadline) await turn()
    })
    assert.deepEqual(machine.patches, [tookOff(volume)])
  })
})

type Run = TestMachine['host']['exec']['run']

/** The machine with another way to run rm. */
function withRm(machine: TestMachine, rm: (path: string, run: () => ReturnType<Run>) => ReturnType<Run>): TestMachine {
  const { host } = machine
  const run: Run = (program, args, options) => {
    const real = () => host.exec.run(program, args, options)
    return program === 'rm' ? rm(args.at(-1) ?? '', real) : real()
  }
  const changed = { ...host, exec: { ...host.exec, run } }
  return { ...machine, host: changed, context: { ...machine.context, host: changed } }
}

const timeIsOver = { code: 137, stdout: '', stderr: '', timedOut: true }

test('STO-05 a pod that mounts a volume during the removal of its directory does not start', { skip }, async () => {
  await onMachine(async (machine) => {
    bindVolume(machine, {})
    await mkdir(pathOf(machine), { recursive: true })
    await writeFile(`${pathOf(machine)}/old`, '')
    const { host } = machine
    let [isAsked, goOn] = [false, () => {}]
    const blocked = new Promise<void>((resolve) => {
      goOn = resolve
    })
    // The removal has found that no pod has the volume.
    const list: typeof host.mounter.list = async () => {
      if (!isAsked) {
        isAsked = true
        await blocked
      }
      return host.mounter.list()
    }
    const context = { ...machine.context, host: { ...host, mounter: { ...host.mounter, list } } }
    const manager = createVolumeManager(context)
    const run = async (annotate: (...names: string[]) => void) => {
      annotate(volume)
      await until(() => isAsked)
      const mounting = manager.setUpPod(podWith())
      for (let i = 0; i < 100; i++) await turn()
      goOn()
      await assert.rejects(mounting)
      assert.match(machine.events.join('\n'), /FailedMount .* was removed with its data at 20/)
      await manager.tearDownPod('u-1')
      await until(() => machine.patches.length > 0)
      assert.deepEqual([await readdir(`${machine.root}/local-path`), machine.patches], [[], [tookOff(volume)]])
    }
    await withRemovals({ ...machine, context, host: context.host }, run, manager)
  })
})

test('STO-05 a volume that comes back with a snapshot of the store, after its directory was removed, is not mounted as an empty one', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(`${pathOf(machine)}/data`, { recursive: true })
    assert.equal(await remove(machine), true)
    bindVolume(machine, {})
    await assert.rejects(createVolumeManager(machine.context).setUpPod(podWith()))
    const refusal = `${pathOf(machine)} was removed with its data at .*Z: delete the claim for a new volume`
    assert.match(machine.events.join('\n'), new RegExp(`^Warning FailedMount .*${refusal}$`))
    assert.equal(await isThere(pathOf(machine)), false)
    // The user has put the data back.
    await mkdir(pathOf(machine))
    assert.equal((await createVolumeManager(machine.context).setUpPod(podWith())).has('data'), true)
  })
})

test('STO-05 a node forgets the oldest of its removed volumes, when there are many', { skip }, async () => {
  await onMachine(async (machine) => {
    const records = `${machine.root}/local-path-removed`
    await mkdir(records)
    for (let i = 0; i < 10_000; i++) await writeFile(`${records}/pvc-${i}`, '')
    await utimes(`${records}/pvc-7`, 1, 1)
    await mkdir(pathOf(machine), { recursive: true })
    assert.equal(await remove(machine), true)
    assert.deepEqual([(await readdir(records)).length, await isThere(`${records}/pvc-7`), await isThere(`${records}/${volume}`)], [9_001, false, true])
  })
})

test('STO-05 what a kubelet that ended left of a removal is removed at the next start, without a request, and nothing else', { skip }, async () => {
  await onMachine(async (machine) => {
    await mkdir(`${pathOf(machine)}.gone/a/b`, { recursive: true })
    for (const other of ['pvc-other', 'backup.gone', '.gone', 'PVC-1.gone']) await mkdir(pathOf(machine, other))
    let isDone = false
    const observed = withRm(machine, (_, rm) =>
      rm().finally(() => {
        isDone = true
      }),
    )
    await withRemovals(observed, () => until(() => isDone))
    assert.deepEqual([(await readdir(`${machine.root}/local-path`)).sort(), machine.patches], [['.gone', 'PVC-1.gone', 'backup.gone', 'pvc-other'], []])
  })
})

test('STO-05 large directories that take long do not hold back the removal of a small one', { skip }, async () => {
  await onMachine(async (machine) => {
    const large = Array.from({ length: 10 }, (_, index) => `pvc-large-${index}`)
    for (const name of [...large, 'pvc-small']) await mkdir(pathOf(machine, name), { recursive: true })
    const slices = new Map<string, number>()
    const slow = withRm(machine, async (path, rm) => {
      if (path.includes('small')) return rm()
      slices.set(path, (slices.get(path) ?? 0) + 1)
      await turn()
      return timeIsOver
    })
    await withRemovals(slow, async (annotate, clock) => {
      annotate(...large)
      await until(() => slices.size === 10)
      annotate(...large, 'pvc-small')
      await until(() => {
        void clock.advance(1_000)
        return machine.patches.length > 0
      })
      assert.deepEqual(machine.patches, [tookOff('pvc-small')])
      const counts = [...slices.values()]
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 4, `slices: ${counts}`)
    })
  })
})

test('STO-05 a removal whose time is over is unfinished, and later slices finish it', { skip }, async () => {
  await onMachine(async (machine) => {
    for (let i = 0; i < 50; i++) await mkdir(`${pathOf(machine)}/${i}/a/b/c/d`, { recursive: true })
    const outcome = await removeLocalPath({ host: machine.host, rootDirectory: machine.root }, volume, { ...slice, sliceMs: 0 })
    assert.equal(outcome, 'unfinished')
    assert.deepEqual(await readdir(`${machine.root}/local-path`), [`${volume}.gone`])
    while (!(await remove(machine))) await turn()
    assert.deepEqual(await readdir(`${machine.root}/local-path`), [])
  })
})
