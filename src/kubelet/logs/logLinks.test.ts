import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import type { KubeletContext } from '../core/context.ts'
import { linkContainerLog, logLinkName, removeDeadLogLinks } from './logLinks.ts'

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', uid: 'u' },
  spec: { containers: [{ name: 'main' }] },
  status: {},
}

test('KUB-25 the name of a link has room in a file system', () => {
  assert.equal(logLinkName(pod, 'main', 'abc'), 'web_shop_main-abc.log')
  const long = { ...pod, metadata: { ...pod.metadata, name: 'w'.repeat(253) } }
  assert.deepEqual([logLinkName(long, 'main', 'abc').length, logLinkName(long, 'main', 'abc').slice(-5)], [255, 'w.log'])
})

test('KUB-25 logs are found by the names of their pods until they are gone', async () => {
  const root = await mkdtemp(join(tmpdir(), 'skiff-links-'))
  const config = { podLogsDirectory: join(root, 'pods') }
  const context = { host: { path: (path: string) => path }, config, log: noLog } as unknown as KubeletContext
  const links = () => readdir(join(root, 'containers')).then((names) => names.sort())
  const directory = join(config.podLogsDirectory, 'shop_web_u', 'main')
  try {
    await mkdir(directory, { recursive: true })
    for (const file of ['0.log', '1.log']) await writeFile(join(directory, file), file)
    await linkContainerLog(context, pod, 'main', 'one', join(directory, '0.log'))
    await linkContainerLog(context, pod, 'main', 'two', join(directory, '1.log'))
    await linkContainerLog(context, pod, 'main', 'three', join(directory, 'none.log'))
    await symlink('/nowhere/of/others', join(root, 'containers', 'other-x.log'))
    assert.equal(await readFile(join(root, 'containers', 'web_shop_main-two.log'), 'utf8'), '1.log')
    await rm(directory, { recursive: true })
    await removeDeadLogLinks(context, (id) => id === 'two')
    assert.deepEqual(await links(), ['other-x.log', 'web_shop_main-two.log'])
    await removeDeadLogLinks(context, () => false)
    assert.deepEqual(await links(), ['other-x.log'])
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})
