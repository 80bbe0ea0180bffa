import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ExecResult } from './exec.ts'
import { createMounter, parseMountInfo } from './mounts.ts'

test('parseMountInfo reads binds, shared marks and escaped blanks', () => {
  const text = [
    '25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro',
    '99 25 0:40 /sub /var/lib/my\\040dir ro,nosuid - tmpfs tmpfs rw,size=8192k',
    '',
  ].join('\n')
  assert.deepEqual(parseMountInfo(text), [
    {
      id: 25,
      parentId: 1,
      root: '/',
      mountPoint: '/',
      options: ['rw', 'relatime'],
      shared: true,
      filesystem: 'ext4',
      source: '/dev/sda1',
      superOptions: ['rw', 'errors=remount-ro'],
    },
    {
      id: 99,
      parentId: 25,
      root: '/sub',
      mountPoint: '/var/lib/my dir',
      options: ['ro', 'nosuid'],
      shared: false,
      filesystem: 'tmpfs',
      source: 'tmpfs',
      superOptions: ['rw', 'size=8192k'],
    },
  ])
})

test('a source that looks like an option is none', async () => {
  const words: string[][] = []
  const mounter = createMounter({
    run: async (command, args) => {
      words.push([command, ...args])
      return { code: 0, stdout: '', stderr: '', timedOut: false }
    },
    spawn: () => assert.fail('nothing is spawned'),
  })
  await mounter.mount({ source: '--make-rshared', target: '/x', options: ['bind'] })
  assert.deepEqual(words, [['mount', '-o', 'bind', '--', '--make-rshared', '/x']])
})

test('unmounting what is not mounted is fine; other failures are not', async () => {
  const answer = (stderr: string): ExecResult => ({ code: 32, stdout: '', stderr, timedOut: false })
  const mounter = (stderr: string) =>
    createMounter({
      run: async () => answer(stderr),
      spawn: () => {
        throw new Error('not used')
      },
    })
  await mounter('umount: /x: not mounted.').unmount('/x')
  await assert.rejects(mounter('umount: /x: target is busy.').unmount('/x'), /target is busy/)
})
