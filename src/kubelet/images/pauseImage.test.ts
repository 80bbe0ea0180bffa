import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pauseExecutable, pauseImage } from './pauseImage.ts'

const headers = [
  { architecture: 'x64', machine: 62, bytes: 152 },
  { architecture: 'arm64', machine: 183, bytes: 184 },
]
for (const { architecture, machine, bytes } of headers) {
  test(`the pause executable for ${architecture} is one loadable segment that holds its entry`, () => {
    const elf = pauseExecutable(architecture)
    assert.equal(elf.length, bytes)
    assert.equal(elf.toString('latin1', 0, 7), '\x7fELF\x02\x01\x01')
    assert.deepEqual([elf.readUInt16LE(16), elf.readUInt16LE(18), elf.readUInt32LE(20)], [2, machine, 1])
    const [entry, programHeaders] = [Number(elf.readBigUInt64LE(24)), Number(elf.readBigUInt64LE(32))]
    assert.deepEqual([elf.readUInt16LE(52), elf.readUInt16LE(54), elf.readUInt16LE(56)], [64, 56, 1])
    const field = (at: number) => Number(elf.readBigUInt64LE(programHeaders + at))
    const [offset, address, fileBytes, memoryBytes, pageBytes] = [field(8), field(16), field(32), field(40), field(48)]
    assert.deepEqual([elf.readUInt32LE(programHeaders), elf.readUInt32LE(programHeaders + 4)], [1, 5])
    assert.equal((address - offset) % pageBytes, 0)
    assert.deepEqual([fileBytes, memoryBytes, entry - address], [bytes, bytes, 120])
  })
}

test('an architecture without a pause executable is named', () => {
  assert.throws(() => pauseExecutable('riscv64'), /no pause executable for riscv64: set another sandbox image/)
})

test('the pause image names its architecture as containerd looks for it', () => {
  assert.ok(pauseImage('pause:1', 'arm64').includes('"architecture":"arm64"'))
  assert.ok(pauseImage('pause:1', 'x64').includes('"architecture":"amd64"'))
})

/** Runs arm64 code as far as the pause program needs it; no such machine is here. Stops at the third system call. */
function runArm64(code: Buffer): { number: bigint; args: bigint[]; memory: bigint[] }[] {
  const registers = Array.from({ length: 32 }, () => 0xdeadn)
  const memory = new Map<bigint, bigint>()
  let sp = 0x1000n
  const zeroOr = (register: number) => (register === 31 ? 0n : (registers[register] ?? 0n))
  const calls: { number: bigint; args: bigint[]; memory: bigint[] }[] = []
  for (let at = 0; calls.length < 3; at += 4) {
    const word = code.readUInt32LE(at)
    const [rd, rn, rt2, rm] = [word & 31, (word >>> 5) & 31, (word >>> 10) & 31, (word >>> 16) & 31]
    if (word >>> 21 === 0b11010010100)
      registers[rd] = BigInt((word >>> 5) & 0xffff) // movz
    else if ((word & 0xffe0ffe0) >>> 0 === 0xaa0003e0)
      registers[rd] = zeroOr(rm) // mov between registers
    else if ((word & 0xffffffe0) >>> 0 === 0x910003e0)
      registers[rd] = sp // mov from the stack pointer
    else if (word >>> 22 === 0b1010100110 && rn === 31) {
      sp += BigInt(((((word >>> 15) & 0x7f) ^ 0x40) - 0x40) * 8) // stp, pre-indexed
      memory.set(sp, zeroOr(rd)).set(sp + 8n, zeroOr(rt2))
    } else if (word === 0xd4000001) {
      const args = registers.slice(0, 4)
      const pointed = [0n, 8n, 16n, 24n].map((offset) => memory.get((args[1] ?? 0n) + offset) ?? -1n)
      calls.push({ number: registers[8] ?? -1n, args, memory: pointed })
      registers[0] = 0n
    } else if (word >>> 26 === 0b000101)
      at += (((word & 0x3ffffff) ^ 0x2000000) - 0x2000000) * 4 - 4 // b
    else assert.fail(`unexpected instruction ${word.toString(16)} at ${at}`)
  }
  return calls
}

test('on arm64 it ignores SIGCHLD, then waits in a loop without an end', () => {
  const [first, ...rest] = runArm64(pauseExecutable('arm64').subarray(120))
  assert.equal(first?.number, 134n)
  assert.deepEqual([first?.args[0], first?.args[2], first?.args[3]], [17n, 0n, 8n])
  assert.deepEqual(first?.memory, [1n, 0n, 0n, 0n])
  for (const call of rest) assert.deepEqual([call.number, ...call.args], [73n, 0n, 0n, 0n, 0n])
})

const skip = arch() === 'x64' && platform() === 'linux' ? false : 'not an x86-64 Linux'

test('on amd64 it ignores SIGCHLD and sleeps until it is ended', { skip }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pause-'))
  const file = join(directory, 'pause')
  writeFileSync(file, pauseExecutable('x64'), { mode: 0o755 })
  const child = spawn(file, { stdio: 'ignore' })
  try {
    await once(child, 'spawn')
    const status = () => readFileSync(`/proc/${child.pid}/status`, 'utf8')
    const deadline = Date.now() + 10_000
    // Bit 16 of the ignored signals is SIGCHLD's.
    while (!/^SigIgn:\s+[0-9a-f]*1[0-9a-f]{4}$/m.test(status()) || !/^State:\s+S/m.test(status())) {
      assert.ok(Date.now() < deadline, status())
      await nextTurn()
    }
  } finally {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [null, 'SIGTERM'])
    rmSync(directory, { recursive: true })
  }
})
