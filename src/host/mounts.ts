/** The mount table (L1): read from /proc/<pid>/mountinfo, changed through mount(8) and umount(8), because Node has no mount call. */
import { readFile } from 'node:fs/promises'
import { check, type Exec, ExecError } from './exec.ts'

export interface MountPoint {
  readonly id: number
  readonly parentId: number
  /** The part of the filesystem that is mounted: '/' unless a bind. */
  readonly root: string
  readonly mountPoint: string
  readonly options: readonly string[]
  readonly shared: boolean
  readonly filesystem: string
  readonly source: string
  readonly superOptions: readonly string[]
}

export interface MountRequest {
  readonly source: string
  readonly target: string
  readonly filesystem?: string | undefined
  readonly options?: readonly string[] | undefined
}

export interface Mounter {
  list(): Promise<MountPoint[]>
  mount(request: MountRequest): Promise<void>
  /** Bind mounts the file behind an open descriptor, so that its path cannot be exchanged in between. */
  bindDescriptor(descriptor: number, target: string): Promise<void>
  /** Absent mounts are fine. `lazy` detaches now and cleans up when the last user leaves. */
  unmount(target: string, options?: { readonly lazy?: boolean }): Promise<void>
}

/** Parses /proc/<pid>/mountinfo (proc(5)); octal escapes of blanks are undone. */
export function parseMountInfo(text: string): MountPoint[] {
  const mounts: MountPoint[] = []
  for (const line of text.split('\n')) {
    const [left, right] = line.split(' - ')
    if (!left || !right) continue
    const [id, parentId, , root, mountPoint, options, ...optional] = left.split(' ')
    const [filesystem, source, superOptions] = right.split(' ')
    if (id === undefined || root === undefined || mountPoint === undefined) continue
    mounts.push({
      id: Number(id),
      parentId: Number(parentId),
      root: unescapeOctal(root),
      mountPoint: unescapeOctal(mountPoint),
      options: (options ?? '').split(','),
      shared: optional.some((field) => field.startsWith('shared:')),
      filesystem: filesystem ?? '',
      source: unescapeOctal(source ?? ''),
      superOptions: (superOptions ?? '').split(','),
    })
  }
  return mounts
}

function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/** @param pid whose mount namespace is listed; commands run in whatever namespace `exec` enters. */
export function createMounter(exec: Exec, pid: number | 'self' = 'self'): Mounter {
  return {
    list: async () => parseMountInfo(await readFile(`/proc/${pid}/mountinfo`, 'utf8')),
    mount: async ({ source, target, filesystem, options = [] }) => {
      const type = filesystem ? ['-t', filesystem] : []
      const flags = options.length > 0 ? ['-o', options.join(',')] : []
      // A source may be any text: it is no option.
      await check(exec, 'mount', [...type, ...flags, '--', source, target])
    },
    bindDescriptor: async (descriptor, target) => {
      await check(exec, 'mount', ['--no-canonicalize', '-o', 'bind', '/proc/self/fd/3', target], { descriptors: [descriptor] })
    },
    unmount: async (target, { lazy = false } = {}) => {
      const args = [...(lazy ? ['-l'] : []), target]
      const result = await exec.run('umount', args)
      if (result.code !== 0 && !/not mounted|no mount point|not found|No such file/i.test(result.stderr)) throw new ExecError('umount', args, result)
    },
  }
}
