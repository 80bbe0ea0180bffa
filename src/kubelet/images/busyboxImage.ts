/** An image with the usual small tools (L3), from this machine's own static busybox: for a cluster's first pods and for tests, without a registry. */
import { readFile } from 'node:fs/promises'
import { check, type Exec } from '#host/exec'
import { ociTar, type TarEntry } from './ociTar.ts'

/** @throws when busybox is not installed (Debian: busybox-static). */
export async function busyboxImage(exec: Exec, names: readonly string[], path = '/bin/busybox'): Promise<Buffer> {
  const data = await readFile(path)
  const applets = (await check(exec, path, ['--list'])).split('\n').filter((applet) => applet && applet !== 'busybox')
  const directory = (name: string, mode = 0o755): TarEntry => ({ path: `${name}/`, type: 'directory', mode })
  const text = (name: string, content: string): TarEntry => ({ path: name, type: 'file', data: Buffer.from(content) })
  return ociTar({
    names,
    command: ['sh'],
    files: [
      ...['bin', 'etc', 'home', 'root', 'usr', 'usr/bin', 'var', 'var/run', 'www'].map((name) => directory(name)),
      directory('tmp', 0o1777),
      { path: 'bin/busybox', type: 'file', mode: 0o755, data },
      ...applets.map((applet): TarEntry => ({ path: `bin/${applet}`, type: 'symlink', target: 'busybox' })),
      text('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n'),
      text('etc/group', 'root:x:0:\nnogroup:x:65534:\n'),
    ],
  })
}
