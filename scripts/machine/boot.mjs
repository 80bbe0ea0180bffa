/** Boots the machine under qemu's emulation of a processor. It has no network card. */
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { createInterface } from 'node:readline'

const memoryMiB = 4096
const processors = 2

/**
 * Runs until the machine powers itself off.
 * @param disks its files: the system's and the folder's; both keep what is written
 * @param onLine is given each line that the script in the machine prints
 * @returns whether the machine powered off in time, and the end of its console
 */
export async function boot({ image, disks, log, seconds, onLine }) {
  const words = [
    ...['-accel', 'tcg,thread=multi', '-cpu', 'max', '-m', `${memoryMiB}`, '-smp', `${processors}`],
    ...['-display', 'none', '-monitor', 'none', '-nic', 'none', '-no-reboot'],
    ...['-serial', `file:${log}`, '-serial', 'stdio'],
    ...['-kernel', image.kernel, '-initrd', image.initrd, '-append', 'root=/dev/vda console=ttyS0 panic=1 quiet'],
    ...disks.flatMap(({ file, format }) => ['-drive', `file=${file},format=${format},if=virtio,cache=unsafe`]),
  ]
  const machine = spawn('qemu-system-x86_64', words, { stdio: ['ignore', 'pipe', 'pipe'] })
  let complaints = ''
  machine.stderr.setEncoding('utf8').on('data', (text) => {
    complaints = (complaints + text).slice(-4_000)
  })
  createInterface({ input: machine.stdout }).on('line', (line) => onLine(line.replaceAll('\r', '')))
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    machine.kill('SIGKILL')
  }, seconds * 1000)
  const end = () => void machine.kill('SIGKILL')
  process.once('exit', end)
  const code = await new Promise((resolve, reject) => machine.once('error', reject).once('close', resolve))
  clearTimeout(timer)
  process.removeListener('exit', end)
  const console_ = fs.existsSync(log) ? fs.readFileSync(log, 'utf8').slice(-4_000) : ''
  return { isOff: !isLate && code === 0, why: isLate ? `the machine did not power off within ${seconds} s` : complaints, console: console_ }
}
