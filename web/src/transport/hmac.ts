/** HMAC-SHA-256 (RFC 2104, FIPS 180-4), for pages that the browser gives no `crypto.subtle`: plain HTTP beyond this machine. */

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;
const ROUNDS = 64;

/** The first 32 bits of the fractional parts of roots of the first primes: that is how the standard defines its constants. */
function constants(count: number, root: number): Uint32Array {
  const found: number[] = [];
  for (let candidate = 2; found.length < count; candidate += 1) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) isPrime &&= candidate % divisor !== 0;
    if (isPrime) found.push((candidate ** (1 / root) % 1) * 2 ** 32);
  }
  return Uint32Array.from(found);
}

const START = constants(8, 2);
const ROUND = constants(ROUNDS, 3);

export function hmacSha256(key: Uint8Array, text: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(key.length > BLOCK_BYTES ? sha256(key) : key);
  const inner = sha256(joined(block.map((byte) => byte ^ 0x36), text));
  return sha256(joined(block.map((byte) => byte ^ 0x5c), inner));
}

export function sha256(text: Uint8Array): Uint8Array {
  const padded = new DataView(new ArrayBuffer(Math.ceil((text.length + 1 + LENGTH_BYTES) / BLOCK_BYTES) * BLOCK_BYTES));
  new Uint8Array(padded.buffer).set(joined(text, Uint8Array.of(0x80)));
  padded.setBigUint64(padded.byteLength - LENGTH_BYTES, BigInt(text.length) * 8n);
  const hash = START.slice();
  for (let at = 0; at < padded.byteLength; at += BLOCK_BYTES) mix(hash, padded, at);
  const found = new DataView(new ArrayBuffer(hash.length * 4));
  hash.forEach((word, index) => found.setUint32(index * 4, word));
  return new Uint8Array(found.buffer);
}

function mix(hash: Uint32Array, padded: DataView, at: number): void {
  const words = new Uint32Array(ROUNDS);
  for (let index = 0; index < ROUNDS; index += 1) {
    if (index < 16) words[index] = padded.getUint32(at + index * 4);
    else {
      const [early, late] = [word(words, index - 15), word(words, index - 2)];
      const small = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
      words[index] = word(words, index - 16) + small + word(words, index - 7) + (turned(late, 17) ^ turned(late, 19) ^ (late >>> 10));
    }
  }
  let [a, b, c, d, e, f, g, h] = Array.from(hash) as [number, number, number, number, number, number, number, number];
  for (let index = 0; index < ROUNDS; index += 1) {
    const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + word(ROUND, index) + word(words, index)) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((value, index) => {
    hash[index] = word(hash, index) + value;
  });
}

function word(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function turned(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits));
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
