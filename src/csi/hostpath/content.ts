/**
 * The content of volumes and snapshots (L2): a directory `data`, or a sparse file `disk` for block access. Copies are made by cp(1): in a process of its own, shared
 * with the original where the file system can, and with the holes of sparse files.
 */
import { open, rm, truncate } from 'node:fs/promises'
import path from 'node:path'
import { check, type Exec } from '#host/exec'
import { makeDirectory } from '#host/files'
import { CsiError } from '../server/csiTypes.ts'
import type { AccessType } from './state.ts'

export const dataOf = (content: string) => path.join(content, 'data')
export const diskOf = (content: string) => path.join(content, 'disk')

/** Removes what it made when it fails. */
export async function createContent(content: string, accessType: AccessType, bytes: number): Promise<void> {
  await orRemove(content, async () => {
    await makeDirectory(content, 0o700)
    if (accessType === 'mount') return void (await makeDirectory(dataOf(content), 0o777))
    await (await open(diskOf(content), 'wx', 0o600)).close()
    await growContent(content, 'block', bytes)
  })
}

/** @param bytes the size of the copy of a disk */
export async function copyContent(exec: Exec, from: string, to: string, accessType: AccessType, bytes: number): Promise<void> {
  await orRemove(to, async () => {
    await check(exec, 'cp', ['-a', '--reflink=auto', '--sparse=always', '--', from, to])
    await growContent(to, accessType, bytes)
  })
}

export async function growContent(content: string, accessType: AccessType, bytes: number): Promise<void> {
  if (accessType === 'block') await truncate(diskOf(content), bytes)
}

export async function removeContent(content: string): Promise<void> {
  await rm(content, { recursive: true, force: true })
}

async function orRemove(content: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    await removeContent(content)
    if (error instanceof Error && /no space left|disk quota exceeded/i.test(error.message)) throw new CsiError('RESOURCE_EXHAUSTED', error.message)
    throw error
  }
}
