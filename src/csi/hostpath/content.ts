/**
 * The content of volumes and snapshots (L2): a directory `data`, or a sparse file `disk` for block access. Copies are made by cp(1): in a process of its own, shared
 * with the original where the file system can, and with the holes of sparse files.
 */
import { open, rm, truncate } from 'node:fs/promises'
import path from 'node:path'
import { check, type Exec } from '#host/exec'
import { exists, freeBytesOf, makeDirectory } from '#host/files'
import { CsiError } from '../server/csiTypes.ts'
import type { AccessType } from './state.ts'

export const dataOf = (content: string) => path.join(content, 'data')
export const diskOf = (content: string) => path.join(content, 'disk')

/** The contents of volumes and snapshots by their ids. Simulated drivers have none. */
export interface Contents {
  /** On the disk when it resolves. */
  create(id: string, accessType: AccessType, bytes: number): Promise<void>
  /** On the disk when it resolves. @param bytes the size of the copy of a disk @throws CsiError RESOURCE_EXHAUSTED on a full disk */
  copy(from: string, to: string, accessType: AccessType, bytes: number): Promise<void>
  grow(id: string, accessType: AccessType, bytes: number): Promise<void>
  remove(id: string): Promise<void>
  exists(id: string): Promise<boolean>
  /** Free space of the disk that holds the contents. */
  freeBytes(): Promise<number>
}

/** @param contentOf the directory of an id, below `directory` */
export function diskContents(exec: Exec, directory: string, contentOf: (id: string) => string): Contents {
  return {
    create: (id, accessType, bytes) => createContent(exec, contentOf(id), accessType, bytes),
    copy: (from, to, accessType, bytes) => copyContent(exec, contentOf(from), contentOf(to), accessType, bytes),
    grow: (id, accessType, bytes) => growContent(contentOf(id), accessType, bytes),
    remove: (id) => rm(contentOf(id), { recursive: true, force: true }),
    exists: (id) => exists(contentOf(id)),
    freeBytes: () => freeBytesOf(directory),
  }
}

const nothing = async () => {}
export const noContents: Contents = { create: nothing, copy: nothing, grow: nothing, remove: nothing, exists: async () => true, freeBytes: async () => 0 }

async function createContent(exec: Exec, content: string, accessType: AccessType, bytes: number): Promise<void> {
  await makeDirectory(content, 0o700)
  if (accessType === 'mount') await makeDirectory(dataOf(content), 0o777)
  else await (await open(diskOf(content), 'wx', 0o600)).close()
  await growContent(content, accessType, bytes)
  await sync(exec, content)
}

async function copyContent(exec: Exec, from: string, to: string, accessType: AccessType, bytes: number): Promise<void> {
  // The words by which a full disk is recognized are those of this locale.
  await check(exec, 'env', ['LC_ALL=C', 'cp', '-a', '--reflink=auto', '--sparse=always', '--', from, to]).catch((error: Error) => {
    if (/no space left|disk quota exceeded/i.test(error.message)) throw new CsiError('RESOURCE_EXHAUSTED', error.message)
    throw error
  })
  await growContent(to, accessType, bytes)
  await sync(exec, to)
}

/** A power cut must not leave an entry in the state without its content. */
const sync = (exec: Exec, content: string) => check(exec, 'sync', ['--file-system', content])

async function growContent(content: string, accessType: AccessType, bytes: number): Promise<void> {
  if (accessType === 'block') await truncate(diskOf(content), bytes)
}

/** Removes the contents when the work that makes them fails. @throws what the work throws */
export async function orRemove(contents: Contents, ids: readonly string[], work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    for (const id of ids) await contents.remove(id)
    throw error
  }
}
