// Colours of fields and errors: the tables of the package's own pictures (viridis, RdBu_r).

const POSITIVE = table(
  "44015444025544035745055845065a45085b46095c460b5e460c5f460e61470f62471163471265471466471567471669" +
  "47186a48196b481a6c481c6e481d6f481e70482071482172482273482374472575472676472777472878472a79472b7a" +
  "472c7b462d7c462f7c46307d46317e45327f45347f453580453681443781443982433a83433b83433c84423d84423e85" +
  "4240854141864142864043874044873f45873f47883e48883e49893d4a893d4b893d4c893c4d8a3c4e8a3b508a3b518a" +
  "3a528b3a538b39548b39558b38568b38578c37588c37598c365a8c365b8c355c8c355d8c345e8d345f8d33608d33618d" +
  "32628d32638d31648d31658d31668d30678d30688d2f698d2f6a8d2e6b8e2e6c8e2e6d8e2d6e8e2d6f8e2c708e2c718e" +
  "2c728e2b738e2b748e2a758e2a768e2a778e29788e29798e287a8e287a8e287b8e277c8e277d8e277e8e267f8e26808e" +
  "26818e25828e25838d24848d24858d24868d23878d23888d23898d22898d228a8d228b8d218c8d218d8c218e8c208f8c" +
  "20908c20918c1f928c1f938b1f948b1f958b1f968b1e978a1e988a1e998a1e998a1e9a891e9b891e9c891e9d881e9e88" +
  "1e9f881ea0871fa1871fa2861fa38620a48520a58521a68521a78422a78423a88323a98224aa8225ab8126ac8127ad80" +
  "28ae7f29af7f2ab07e2bb17d2cb17d2eb27c2fb37b30b47a32b57a33b67935b77836b87738b97639b9763bba753dbb74" +
  "3ebc7340bd7242be7144be7045bf6f47c06e49c16d4bc26c4dc26b4fc36951c46853c56755c66657c66559c7645bc862" +
  "5ec96160c96062ca5f64cb5d67cc5c69cc5b6bcd596dce5870ce5672cf5574d05477d05279d1517cd24f7ed24e81d34c" +
  "83d34b86d44988d5478bd5468dd64490d64392d74195d73f97d83e9ad83c9dd93a9fd938a2da37a5da35a7db33aadb32" +
  "addc30afdc2eb2dd2cb5dd2bb7dd29bade27bdde26bfdf24c2df22c5df21c7e01fcae01ecde01dcfe11cd2e11bd4e11a" +
  "d7e219dae218dce218dfe318e1e318e4e318e7e419e9e419ece41aeee51bf1e51cf3e51ef6e61ff8e621fae622fde724",
);

const SIGNED = table(
  "05306106326307346608366909386c0a3a6f0b3c720c3e750d40780e437b0f457e114781124984134b87144d8a154f8d" +
  "1651901754931856951958981a5a9b1c5c9e1d5ea11e60a41f62a72064aa2166ac2368ad246aae256caf276db0286fb0" +
  "2971b12b73b22c75b32d76b42f78b5307ab6317cb7337db8347fb93581b93783ba3884bb3986bc3b88bd3c8abe3d8bbf" +
  "3f8dc0408fc14191c24393c34694c44996c54c98c64f9ac7529cc8559ec958a0ca5ba2cb5ea4cc61a6cd65a8ce68aacf" +
  "6bacd06eaed171b0d274b2d377b4d57ab6d67db8d780bad884bcd987beda8ac0db8dc2dc90c4dd93c5de95c6df98c8df" +
  "9ac9e09dcae19fcbe1a2cde2a4cee3a7cfe4a9d0e4abd2e5aed3e6b0d4e6b3d5e7b5d7e8b8d8e8bad9e9bddaeabfdceb" +
  "c2ddebc4deecc7dfedc9e1edcce2eecee3efd1e5f0d2e5f0d3e6f0d5e7f0d6e7f1d8e8f1d9e9f1dbe9f1dceaf2deebf2" +
  "dfecf2e1ecf3e2edf3e4eef3e5eef3e7eff4e8f0f4eaf1f4ebf1f4edf2f5eef3f5f0f3f5f1f4f6f3f5f6f4f5f6f6f6f6" +
  "f7f6f6f7f5f4f7f4f2f7f3f0f8f2eef8f0ecf8efeaf8eee8f9ede7f9ece5f9ebe3f9eae1f9e9dffae8ddfae7dbfae5d9" +
  "fae4d7fbe3d6fbe2d4fbe1d2fbe0d0fcdfcefcdeccfcddcafcdcc8fddbc7fcd8c4fcd6c1fbd4befbd2bcfbd0b9faceb6" +
  "faccb4facab1f9c7aef9c5abf9c3a9f8c1a6f8bfa3f8bda1f7bb9ef7b99bf7b799f6b496f6b293f5b090f5ae8ef5ac8b" +
  "f4aa88f4a886f4a683f3a380f2a07ef19e7cef9b7aee9878ed9676ec9374eb9072ea8e70e88b6ee7886ce6856ae58368" +
  "e48065e27d63e17b61e0785fdf755dde725bdd7059db6d57da6a55d96853d86551d7624fd6604dd45d4bd35a4ad15749" +
  "d05447ce5146cd4f45cc4c43ca4942c94641c7433fc6403ec53e3cc33b3bc2383ac03538bf3237be3036bc2d34bb2a33" +
  "b92732b82431b6212fb51f2eb41c2db2192bb0172aad162aaa1529a71429a41328a112289e11279b1027991027960f26" +
  "930e26900d258d0c258a0b24870a248409238108237e07227b06227805217504217203206f02206c011f69001f67001f",
);

function table(text) {
  const bytes = new Uint8ClampedArray(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** The colour scale of some numbers: symmetric about 0 where they have either sign.
 *
 * A few peaks shall not make all else pale: if the range would shrink by a fifth without the
 * outermost 0.2 % of the values, it does.
 */
export function scaleOf(values) {
  const step = Math.max(1, Math.floor(values.length / 20000));
  const some = [];
  for (let i = 0; i < values.length; i += step) some.push(values[i]);
  some.sort((a, b) => a - b);
  if (!some.length) return { low: 0, high: 1, table: POSITIVE };
  let low = some[0];
  let high = some[some.length - 1];
  const at = (share) => some[Math.round(share * (some.length - 1))];
  if (at(0.998) - at(0.002) < 0.8 * (high - low)) [low, high] = [at(0.002), at(0.998)];
  const signed = low < 0;
  if (signed) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return { low, high, table: signed ? SIGNED : POSITIVE };
}

/** The scale of an error: diverging around zero, up to its greatest size. */
export function errorScale(values) {
  let top = 0;
  for (const value of values) top = Math.max(top, Math.abs(value));
  return { low: -(top || 1), high: top || 1, table: SIGNED };
}

/** An image of numbers; `at(column, row)` is counted from the upper left corner. */
export function paint(columns, rows, at, scale) {
  const image = new ImageData(columns, rows);
  const factor = 255 / (scale.high - scale.low);
  for (let row = 0, out = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, out += 4) {
      const share = (at(column, row) - scale.low) * factor;
      const entry = 3 * Math.max(0, Math.min(255, Math.round(share)));
      image.data[out] = scale.table[entry];
      image.data[out + 1] = scale.table[entry + 1];
      image.data[out + 2] = scale.table[entry + 2];
      image.data[out + 3] = 255;
    }
  }
  return image;
}
