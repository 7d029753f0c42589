"""Architectures that people bring to edge boards, with seeded weights: from timm and torchvision, and small ones of our own
where those packages have none. Heads are written as their authors export them."""

from collections.abc import Callable
from dataclasses import dataclass

import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn


@dataclass
class Architecture:
    """How a network is made, and the dimensions of its inputs."""

    make: Callable[[], nn.Module]
    shapes: list[tuple[int, ...]]


def seeded(architecture: Architecture) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The network, ready for export, and inputs of it. Batch norms have the statistics of random images, so that signals neither
    die nor grow; parameters that begin all the same, such as scales of layers, differ."""
    torch.manual_seed(0)
    net = architecture.make()
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.numel() > 1 and parameter.std() == 0:
                parameter.add_(0.1 * torch.randn_like(parameter))
        net.eval()
        norms = [part for part in net.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
        for norm in norms:
            norm.momentum = 1.0
            norm.train()
        if norms:
            net(*(_varied(shape) for shape in architecture.shapes))
    return net.eval(), tuple(torch.rand(shape) * 2 - 1 for shape in architecture.shapes)


def _varied(shape: tuple[int, ...]) -> Tensor:
    """Noise that differs in strength and mean, on coarse patterns. After noise alone, the channels of deep layers would hardly
    vary, and batch norms would make much of what little they do."""
    batch, channels, *size = 8, *shape[1:]
    around = torch.randn(batch, channels, *([1] * len(size)))
    if len(size) == 2:
        around = around + F.interpolate(torch.randn(batch, channels, 4, 4), size, mode="bilinear")
    return (torch.rand(batch, channels, *size) * 2 - 1) * torch.rand(batch, *([1] * len(shape[1:]))) + around


# Blocks.


def conv(i: int, o: int, k: int = 1, s: int = 1, g: int = 1, act: type[nn.Module] | None = nn.SiLU) -> nn.Sequential:
    """A convolution, a batch norm and an activation."""
    parts = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*parts, *([act()] if act else []))


def separable(i: int, o: int, s: int = 1, k: int = 3, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(conv(i, i, k, s, i, act), conv(i, o, act=act))


class Selected(nn.Module):
    """A part of what a network gives."""

    def __init__(self, net: nn.Module, select: Callable):
        super().__init__()
        self.net, self.select = net, select

    def forward(self, x: Tensor):
        return self.select(self.net(x))


class Attention(nn.Module):
    """Attention of several heads over `[B, N, C]`, spelled out or by torch's own function."""

    def __init__(self, dim: int, heads: int = 2, fused: bool = False):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            x = F.scaled_dot_product_attention(q, k, v)
        else:
            x = ((q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.out(x.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, dim: int, heads: int = 2, fused: bool = False, act: type[nn.Module] = nn.GELU):
        super().__init__()
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, fused)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), act(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


# Segmentation and depth.


class UNet(nn.Module):
    """Up by transposed convolutions, or by interpolation as the common implementation does, with its padding."""

    def __init__(self, bilinear: bool):
        super().__init__()
        sizes = [8, 16, 32, 64]
        two = lambda i, o: nn.Sequential(conv(i, o, 3, act=nn.ReLU), conv(o, o, 3, act=nn.ReLU))
        self.first = two(3, 8)
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), two(i, o)) for i, o in zip(sizes, sizes[1:]))
        up = lambda i, o: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(i, o, 1))
        make = up if bilinear else lambda i, o: nn.ConvTranspose2d(i, o, 2, 2)
        self.up = nn.ModuleList(make(o, i) for i, o in reversed(list(zip(sizes, sizes[1:]))))
        self.merge = nn.ModuleList(two(2 * i, i) for i in reversed(sizes[:-1]))
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(kept[-1]))
        x = kept.pop()
        for up, merge in zip(self.up, self.merge):
            x, skip = up(x), kept.pop()
            dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            x = merge(torch.cat([skip, F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1))
        return self.out(x)


class BiSeNet(nn.Module):
    """A spatial path, a context path with attention over channels, and their fusion."""

    def __init__(self):
        super().__init__()
        act = nn.ReLU
        self.spatial = nn.Sequential(conv(3, 16, 7, 2, act=act), conv(16, 16, 3, 2, act=act), conv(16, 32, 3, 2, act=act))
        self.stem = nn.Sequential(conv(3, 16, 3, 2, act=act), separable(16, 24, 2), separable(24, 32, 2))
        self.deep, self.deeper = separable(32, 48, 2), separable(48, 64, 2)
        self.arm = nn.ModuleList(conv(i, 32, 3, act=act) for i in (48, 64))
        self.gate = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(32, 32, act=nn.Sigmoid)) for _ in range(2))
        self.whole = conv(64, 32, act=act)
        self.fuse = conv(64, 32, act=act)
        self.share = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1), nn.Sigmoid())
        self.out = nn.Sequential(conv(32, 32, 3, act=act), nn.Conv2d(32, 5, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        size, s8 = x.shape[2:], self.stem(x)
        s16 = self.deep(s8)
        s32 = self.deeper(s16)
        whole = F.interpolate(self.whole(F.avg_pool2d(s32, s32.shape[2:])), s32.shape[2:], mode="nearest")
        low = self.arm[1](s32)
        low = F.interpolate(low * self.gate[1](low) + whole, s16.shape[2:], mode="nearest")
        mid = self.arm[0](s16)
        mid = F.interpolate(mid * self.gate[0](mid) + low, s8.shape[2:], mode="nearest")
        fused = self.fuse(torch.cat([self.spatial(x), mid], 1))
        scores = F.interpolate(self.out(fused + fused * self.share(fused)), size, mode="bilinear", align_corners=True)
        return scores, scores.argmax(1)


class SegFormer(nn.Module):
    """Attention whose keys are of a smaller image, and a head of all levels."""

    def __init__(self):
        super().__init__()
        sizes = [16, 32, 48]
        self.patch = nn.ModuleList(nn.Conv2d(i, o, 7 if i == 3 else 3, 4 if i == 3 else 2, 3 if i == 3 else 1)
                                   for i, o in zip([3, *sizes], sizes))
        self.norm = nn.ModuleList(nn.LayerNorm(o) for o in sizes)
        self.smaller = nn.ModuleList(nn.Conv2d(o, o, r, r) for o, r in zip(sizes, [4, 2, 1]))
        self.q = nn.ModuleList(nn.Linear(o, o) for o in sizes)
        self.kv = nn.ModuleList(nn.Linear(o, 2 * o) for o in sizes)
        self.grow = nn.ModuleList(nn.Linear(o, 2 * o) for o in sizes)
        self.place = nn.ModuleList(nn.Conv2d(2 * o, 2 * o, 3, 1, 1, groups=2 * o) for o in sizes)
        self.shrink = nn.ModuleList(nn.Linear(2 * o, o) for o in sizes)
        self.head = nn.ModuleList(nn.Linear(o, 16) for o in sizes)
        self.out = nn.Sequential(conv(48, 16, act=nn.ReLU), nn.Conv2d(16, 5, 1))

    def forward(self, x: Tensor) -> Tensor:
        levels = []
        for at, norm in enumerate(self.norm):
            x = self.patch[at](x)
            b, c, h, w = x.shape
            t = norm(x.flatten(2).transpose(1, 2))
            q = self.q[at](t).reshape(b, -1, 2, c // 2).permute(0, 2, 1, 3)
            small = self.smaller[at](t.permute(0, 2, 1).reshape(b, c, h, w)).reshape(b, c, -1).permute(0, 2, 1)
            k, v = self.kv[at](small).reshape(b, -1, 2, 2, c // 2).permute(2, 0, 3, 1, 4)
            a = (q @ k.transpose(-2, -1) * (c // 2) ** -0.5).softmax(-1)
            t = t + (a @ v).transpose(1, 2).reshape(b, -1, c)
            grown = self.grow[at](t)
            placed = self.place[at](grown.transpose(1, 2).view(b, 2 * c, h, w)).flatten(2).transpose(1, 2)
            t = t + self.shrink[at](F.gelu(placed))
            x = t.reshape(b, h, w, c).permute(0, 3, 1, 2).contiguous()
            levels.append(self.head[at](t).permute(0, 2, 1).reshape(b, 16, h, w))
        size = levels[0].shape[2:]
        levels = [F.interpolate(level, size, mode="bilinear", align_corners=False) for level in levels]
        return self.out(torch.cat(levels[::-1], 1))


class Dpt(nn.Module):
    """Depth from the tokens of a vision transformer, put together as images of four sizes."""

    def __init__(self):
        super().__init__()
        dim, mid = 48, 16
        self.patch = nn.Conv2d(3, dim, 16, 16)
        self.cls, self.place = nn.Parameter(torch.randn(1, 1, dim)), nn.Parameter(torch.randn(1, 1 + 16, dim))
        self.blocks = nn.ModuleList(Block(dim, 3, fused=True) for _ in range(4))
        self.norm = nn.LayerNorm(dim)
        self.readout = nn.ModuleList(nn.Sequential(nn.Linear(2 * dim, dim), nn.GELU()) for _ in range(4))
        self.project = nn.ModuleList(nn.Conv2d(dim, mid, 1) for _ in range(4))
        self.size = nn.ModuleList([nn.ConvTranspose2d(mid, mid, 4, 4), nn.ConvTranspose2d(mid, mid, 2, 2), nn.Identity(),
                                   nn.Conv2d(mid, mid, 3, 2, 1)])
        self.unit = nn.ModuleList(nn.Sequential(nn.ReLU(), nn.Conv2d(mid, mid, 3, 1, 1), nn.ReLU(), nn.Conv2d(mid, mid, 3, 1, 1))
                                  for _ in range(8))
        self.head = nn.Sequential(nn.Conv2d(mid, 8, 3, 1, 1), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                                  nn.Conv2d(8, 8, 3, 1, 1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.ReLU())
        # So that the depths are not all 0.
        self.head[4].bias.data.fill_(1.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x)
        h, w = x.shape[2:]
        t = x.flatten(2).transpose(1, 2)
        t = torch.cat([self.cls.expand(t.shape[0], -1, -1), t], 1) + self.place
        images = []
        for at, block in enumerate(self.blocks):
            t = block(t)
            normed = self.norm(t)
            words, cls = normed[:, 1:], normed[:, 0].unsqueeze(1)
            read = self.readout[at](torch.cat([words, cls.expand_as(words)], -1))
            image = self.project[at](read.permute(0, 2, 1).reshape(read.shape[0], -1, h, w))
            images.append(self.size[at](image))
        path = None
        for at in (3, 2, 1, 0):
            x = images[at] + self.unit[2 * at](images[at])
            path = x if path is None else path + x
            path = path + self.unit[2 * at + 1](path)
            size = images[at - 1].shape[2:] if at else [2 * side for side in path.shape[2:]]
            path = F.interpolate(path, size, mode="bilinear", align_corners=True)
        return self.head(path).squeeze(1)


# Detection.


class Bottleneck(nn.Module):
    def __init__(self, c: int, k: tuple[int, int] = (3, 3), shrink: float = 1.0):
        super().__init__()
        self.a, self.b = conv(c, int(c * shrink), k[0]), conv(int(c * shrink), c, k[1])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.b(self.a(x))


class C3(nn.Module):
    def __init__(self, i: int, o: int, n: int = 1):
        super().__init__()
        self.a, self.b, self.out = conv(i, o // 2), conv(i, o // 2), conv(o, o)
        self.m = nn.Sequential(*(Bottleneck(o // 2, (1, 3)) for _ in range(n)))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.cat([self.m(self.a(x)), self.b(x)], 1))


class C2f(nn.Module):
    def __init__(self, i: int, o: int, n: int = 1, inner: Callable[[int], nn.Module] = Bottleneck):
        super().__init__()
        self.c = o // 2
        self.a, self.b = conv(i, o), conv((2 + n) * self.c, o)
        self.m = nn.ModuleList(inner(self.c) for _ in range(n))

    def forward(self, x: Tensor) -> Tensor:
        y = list(self.a(x).chunk(2, 1))
        y.extend(m(y[-1]) for m in self.m)
        return self.b(torch.cat(y, 1))


class Sppf(nn.Module):
    def __init__(self, c: int):
        super().__init__()
        self.a, self.b, self.pool = conv(c, c // 2), conv(2 * c, c), nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = [self.a(x)]
        y.extend(self.pool(y[-1]) for _ in range(3))
        return self.b(torch.cat(y, 1))


class Psa(nn.Module):
    """Half of the channels through attention with a depthwise convolution for the places."""

    def __init__(self, c: int, heads: int = 2):
        super().__init__()
        self.c, self.heads = c // 2, heads
        self.dim = self.c // heads
        self.key = self.dim // 2
        self.a, self.b = conv(c, c), conv(c, c)
        self.qkv = conv(self.c, self.c + 2 * self.key * heads, act=None)
        self.proj, self.pe = conv(self.c, self.c, act=None), conv(self.c, self.c, 3, g=self.c, act=None)
        self.ffn = nn.Sequential(conv(self.c, 2 * self.c), conv(2 * self.c, self.c, act=None))

    def attention(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).view(b, self.heads, 2 * self.key + self.dim, h * w).split([self.key, self.key, self.dim], 2)
        a = ((q.transpose(-2, -1) @ k) * self.key**-0.5).softmax(-1)
        return self.proj((v @ a.transpose(-2, -1)).view(b, c, h, w) + self.pe(v.reshape(b, c, h, w)))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.a(x).split((self.c, self.c), 1)
        b = b + self.attention(b)
        return self.b(torch.cat([a, b + self.ffn(b)], 1))


class Pyramid(nn.Module):
    """The backbone and the neck of the YOLO family, small: images of strides 8, 16 and 32."""

    SIZES = [16, 32, 48]

    def __init__(self, block: Callable[[int, int], nn.Module], attend: bool = False):
        super().__init__()
        a, b, c = self.SIZES
        self.stem = nn.Sequential(conv(3, 8, 3, 2), conv(8, 12, 3, 2), block(12, 12), conv(12, a, 3, 2), block(a, a))
        self.p4 = nn.Sequential(conv(a, b, 3, 2), block(b, b))
        self.p5 = nn.Sequential(conv(b, c, 3, 2), block(c, c), Sppf(c), *([Psa(c)] if attend else []))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.n4, self.n3 = block(b + c, b), block(a + b, a)
        self.d3, self.d4 = conv(a, a, 3, 2), conv(b, b, 3, 2)
        self.m4, self.m5 = block(a + b, b), block(b + c, c)

    def forward(self, x: Tensor) -> list[Tensor]:
        p3 = self.stem(x)
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.n4(torch.cat([self.up(p5), p4], 1))
        n3 = self.n3(torch.cat([self.up(n4), p3], 1))
        m4 = self.m4(torch.cat([self.d3(n3), n4], 1))
        return [n3, m4, self.m5(torch.cat([self.d4(m4), p5], 1))]


class YoloAnchors(nn.Module):
    """YOLOv5: three anchors at each place, decoded, as `export.py` writes it."""

    def __init__(self):
        super().__init__()
        self.body, self.no = Pyramid(C3), 5 + 5
        self.m = nn.ModuleList(nn.Conv2d(c, 3 * self.no, 1) for c in Pyramid.SIZES)
        self.register_buffer("anchors", torch.tensor([[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119],
                                                      [116, 90, 156, 198, 373, 326]]).float().view(3, 3, 2))

    def forward(self, x: Tensor) -> Tensor:
        z = []
        for at, x in enumerate(self.body(x)):
            stride = 8 * 2**at
            b, _, ny, nx = x.shape
            x = self.m[at](x).view(b, 3, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            yv, xv = torch.meshgrid(torch.arange(ny).float(), torch.arange(nx).float(), indexing="ij")
            grid = torch.stack((xv, yv), 2).expand(1, 3, ny, nx, 2) - 0.5
            xy, wh, conf = x.sigmoid().split((2, 2, 6), 4)
            xy = (xy * 2 + grid) * stride
            wh = (wh * 2) ** 2 * self.anchors[at].view(1, 3, 1, 1, 2).expand(1, 3, ny, nx, 2)
            z.append(torch.cat((xy, wh, conf), 4).view(b, 3 * nx * ny, self.no))
        return torch.cat(z, 1)


def top(scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The scores, classes and boxes of the best, as ultralytics takes them."""
    batch, _, classes = scores.shape
    ori = scores.max(dim=-1)[0].topk(count)[1].unsqueeze(-1)
    scores = scores.gather(dim=1, index=ori.repeat(1, 1, classes))
    scores, index = scores.flatten(1).topk(count)
    boxes = ori[torch.arange(batch)[..., None], index // classes]
    return scores[..., None], (index % classes)[..., None].float(), boxes


class Yolo(nn.Module):
    """YOLOv8, 10, 11 and 26: no anchors. `bins` is the number of the distribution's bins, 1 if there is none; with `count`, that
    many boxes are chosen, with no NMS after them."""

    CLASSES = 5

    def __init__(self, body: nn.Module, bins: int = 16, light: bool = False, count: int = 0):
        super().__init__()
        self.body, self.bins, self.count = body, bins, count
        mix = lambda i, o: nn.Sequential(conv(i, i, 3, g=i), conv(i, o)) if light else conv(i, o, 3)
        box = lambda c: nn.Sequential(conv(c, 16, 3), conv(16, 16, 3), nn.Conv2d(16, 4 * bins, 1))
        self.box = nn.ModuleList(box(c) for c in Pyramid.SIZES)
        self.cls = nn.ModuleList(nn.Sequential(mix(c, 16), mix(16, 16), nn.Conv2d(16, self.CLASSES, 1)) for c in Pyramid.SIZES)
        self.dfl = nn.Conv2d(bins, 1, 1, bias=False)
        self.dfl.weight.data[:] = torch.arange(bins).view(1, bins, 1, 1).float()

    def forward(self, x: Tensor) -> Tensor:
        levels, points, strides = self.body(x), [], []
        b = x.shape[0]
        for at, level in enumerate(levels):
            h, w = level.shape[2:]
            sy, sx = torch.meshgrid(torch.arange(h).float() + 0.5, torch.arange(w).float() + 0.5, indexing="ij")
            points.append(torch.stack((sx, sy), -1).view(-1, 2))
            strides.append(torch.full((h * w, 1), 8.0 * 2**at))
        points, strides = torch.cat(points).transpose(0, 1), torch.cat(strides).transpose(0, 1)
        both = [torch.cat((self.box[at](level), self.cls[at](level)), 1) for at, level in enumerate(levels)]
        both = torch.cat([x.view(b, 4 * self.bins + self.CLASSES, -1) for x in both], 2)
        box, cls = both.split((4 * self.bins, self.CLASSES), 1)
        if self.bins > 1:
            box = self.dfl(box.view(b, 4, self.bins, -1).transpose(2, 1).softmax(1)).view(b, 4, -1)
        lt, rb = box.chunk(2, 1)
        lo, hi = points.unsqueeze(0) - lt, points.unsqueeze(0) + rb
        if not self.count:
            box = torch.cat(((lo + hi) / 2, hi - lo), 1) * strides
            return torch.cat((box, cls.sigmoid()), 1)
        found = torch.cat((torch.cat((lo, hi), 1) * strides, cls.sigmoid()), 1).permute(0, 2, 1)
        boxes, scores = found.split([4, self.CLASSES], dim=-1)
        scores, classes, idx = top(scores, self.count)
        return torch.cat([boxes.gather(dim=1, index=idx.repeat(1, 1, 4)), scores, classes], dim=-1)


def deformable(value: Tensor, shapes: list[tuple[int, int]], where: Tensor, weights: Tensor) -> Tensor:
    """Attention at a few computed places of each level, by grid_sample, as RT-DETR has it."""
    bs, _, heads, dim = value.shape
    _, queries, _, levels, points, _ = where.shape
    values = value.split([h * w for h, w in shapes], dim=1)
    grids, sampled = 2 * where - 1, []
    for level, (h, w) in enumerate(shapes):
        image = values[level].flatten(2).permute(0, 2, 1).reshape(bs * heads, dim, h, w)
        grid = grids[:, :, :, level].permute(0, 2, 1, 3, 4).flatten(0, 1)
        sampled.append(F.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False))
    weights = weights.permute(0, 2, 1, 3).reshape(bs * heads, 1, queries, levels * points)
    out = (torch.stack(sampled, dim=-2).flatten(-2) * weights).sum(-1).view(bs, heads * dim, queries)
    return out.transpose(1, 2).contiguous()


class RtDetr(nn.Module):
    """Queries chosen among the places of three levels, and a decoder that looks at few places for each. With `look_up`, the
    anchors of the chosen places are taken from a table, as ultralytics has it."""

    def __init__(self, look_up: bool, queries: int = 20, dim: int = 32, heads: int = 4, points: int = 4, classes: int = 5):
        super().__init__()
        self.look_up = look_up
        self.queries, self.dim, self.heads, self.points, self.levels = queries, dim, heads, points, 3
        self.body = Pyramid(C3)
        self.flat = nn.ModuleList(conv(c, dim, act=None) for c in Pyramid.SIZES)
        self.encoder = nn.TransformerEncoderLayer(dim, heads, 2 * dim, 0.0, "gelu", batch_first=True)
        self.enc = nn.Sequential(nn.Linear(dim, dim), nn.LayerNorm(dim))
        self.enc_class, self.enc_box = nn.Linear(dim, classes), nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 4))
        self.place = nn.Sequential(nn.Linear(4, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        layers = range(2)
        self.self_attention = nn.ModuleList(nn.MultiheadAttention(dim, heads, batch_first=True) for _ in layers)
        self.offsets = nn.ModuleList(nn.Linear(dim, heads * self.levels * points * 2) for _ in layers)
        self.shares = nn.ModuleList(nn.Linear(dim, heads * self.levels * points) for _ in layers)
        self.value = nn.ModuleList(nn.Linear(dim, dim) for _ in layers)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(6))
        self.ffn = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in layers)
        self.box = nn.ModuleList(nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 4)) for _ in layers)
        self.score = nn.Linear(dim, classes)

    def anchors(self, shapes: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        anchors = []
        for level, (h, w) in enumerate(shapes):
            y, x = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
            xy = (torch.stack([x, y], -1) + 0.5) / torch.tensor([w, h]).float()
            anchors.append(torch.cat([xy, torch.ones_like(xy) * 0.05 * 2**level], -1).reshape(-1, h * w, 4))
        anchors = torch.cat(anchors, 1)
        valid = ((anchors > 0.01) * (anchors < 0.99)).all(-1, keepdim=True)
        return torch.where(valid, torch.log(anchors / (1 - anchors)), torch.inf), valid

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        levels = [flat(level) for flat, level in zip(self.flat, self.body(x))]
        shapes = [(level.shape[2], level.shape[3]) for level in levels]
        b = x.shape[0]
        last = levels[2].flatten(2).permute(0, 2, 1)
        levels[2] = self.encoder(last).permute(0, 2, 1).reshape(b, self.dim, *shapes[2])
        memory = torch.cat([level.flatten(2).permute(0, 2, 1) for level in levels], 1)
        anchors, valid = self.anchors(shapes)
        found = self.enc(valid.to(memory.dtype) * memory)
        classes, boxes = self.enc_class(found), self.enc_box(found)
        index = torch.topk(classes.max(-1).values, self.queries, dim=1)[1]
        reference = (boxes if self.look_up else boxes + anchors).gather(dim=1, index=index.unsqueeze(-1).repeat(1, 1, 4))
        reference = (reference + anchors[0, index] if self.look_up else reference).sigmoid()
        target = found.gather(dim=1, index=index.unsqueeze(-1).repeat(1, 1, self.dim))
        for at in range(2):
            place = self.place(reference)
            q = target + place
            target = self.norms[3 * at](target + self.self_attention[at](q, q, target, need_weights=False)[0])
            q = target + place
            value = self.value[at](memory).reshape(b, -1, self.heads, self.dim // self.heads)
            offsets = self.offsets[at](q).reshape(b, self.queries, self.heads, self.levels, self.points, 2)
            shares = self.shares[at](q).reshape(b, self.queries, self.heads, self.levels * self.points).softmax(-1)
            box = reference[:, :, None, None, None]
            where = box[..., :2] + offsets / self.points * box[..., 2:] * 0.5
            target = self.norms[3 * at + 1](target + deformable(value, shapes, where, shares))
            target = self.norms[3 * at + 2](target + self.ffn[at](target))
            r = reference.clip(0, 1)
            inverse = torch.log(r.clip(min=1e-5) / (1 - r).clip(min=1e-5))
            reference = (self.box[at](target) + inverse).sigmoid()
        return reference, self.score(target)


class Detr(nn.Module):
    """Learned queries, which attend to the places of an image. The masks let everything be seen, as those of transformers do
    for one image."""

    def __init__(self, queries: int = 10, dim: int = 32, heads: int = 4, classes: int = 5):
        super().__init__()
        self.heads, self.body, self.flat = heads, Light([16, 24, 32], nn.ReLU), nn.Conv2d(32, dim, 1)
        self.place, self.queries = nn.Parameter(torch.randn(1, 9, dim)), nn.Parameter(torch.randn(1, queries, dim))
        linear = lambda count: nn.ModuleList(nn.Linear(dim, dim) for _ in range(count))
        self.q, self.k, self.v, self.o = linear(3), linear(3), linear(3), linear(3)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.score, self.box = nn.Linear(dim, classes + 1), nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 4))

    def attend(self, at: int, x: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        split = lambda x: x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
        mask = torch.ones(1, 1, query.shape[1], key.shape[1], dtype=torch.bool)
        found = F.scaled_dot_product_attention(split(self.q[at](query)), split(self.k[at](key)), split(self.v[at](value)), mask)
        return self.norms[at](x + self.o[at](found.transpose(1, 2).flatten(2)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.flat(self.body(x)[2]).flatten(2).transpose(1, 2)
        memory = self.attend(0, x, x + self.place, x + self.place, x)
        target = torch.zeros_like(self.queries)
        target = self.attend(1, target, target + self.queries, target + self.queries, target)
        target = target.expand(x.shape[0], -1, -1)
        target = self.attend(2, target, target + self.queries, memory + self.place, memory)
        target = target + self.ffn(target)
        return self.score(target), self.box(target).sigmoid()


class YoloClasses(nn.Module):
    """YOLO26 for segmentation: the class of each pixel, in bytes."""

    def __init__(self):
        super().__init__()
        self.body, self.out = Pyramid(c3k2, attend=True), nn.Sequential(conv(16, 16, 3), nn.Conv2d(16, 5, 1))

    def forward(self, x: Tensor) -> Tensor:
        scores = F.interpolate(self.out(self.body(x)[0]), scale_factor=8, mode="bilinear", align_corners=False)
        return scores.argmax(1).to(torch.uint8)


class SsdHead(nn.Module):
    """torchvision's SSDlite as far as its raw heads."""

    def __init__(self):
        super().__init__()
        net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
        self.backbone, self.head = net.backbone, net.head

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.head(list(self.backbone(x).values()))
        return found["bbox_regression"], found["cls_logits"].softmax(-1)


class Light(nn.Module):
    """A small backbone of separable convolutions: images of strides 8, 16 and 32."""

    def __init__(self, sizes: list[int], act: type[nn.Module]):
        super().__init__()
        a, b, c = sizes
        self.a = nn.Sequential(conv(3, 8, 3, 2, act=act), separable(8, 16, 2, act=act), separable(16, a, 2, act=act))
        self.b, self.c = separable(a, b, 2, act=act), separable(b, c, 2, act=act)

    def forward(self, x: Tensor) -> list[Tensor]:
        a = self.a(x)
        b = self.b(a)
        return [a, b, self.c(b)]


class NanoDet(nn.Module):
    """Distances as distributions, decoded (PicoDet) or raw (NanoDet)."""

    def __init__(self, decode: bool):
        super().__init__()
        act = nn.Hardswish if decode else nn.LeakyReLU
        self.decode, self.classes = decode, 5
        self.body = Light([16, 24, 32], act)
        self.flat = nn.ModuleList(conv(c, 24, act=act) for c in (16, 24, 32))
        self.down = nn.ModuleList(separable(24, 24, 2, 5, act) for _ in range(2))
        self.merge = nn.ModuleList(separable(48, 24, 1, 5, act) for _ in range(4))
        head = lambda: nn.Sequential(separable(24, 24, 1, 5, act), nn.Conv2d(24, self.classes + 32, 1))
        self.head = nn.ModuleList(head() for _ in range(3))
        self.register_buffer("project", torch.linspace(0, 7, 8))

    def forward(self, x: Tensor):
        x3, x4, x5 = (flat(x) for flat, x in zip(self.flat, self.body(x)))
        up = lambda x, like: F.interpolate(x, size=like.shape[2:], mode="nearest") if self.decode else F.interpolate(
            x, scale_factor=2, mode="bilinear", align_corners=False)
        x4 = self.merge[0](torch.cat([up(x5, x4), x4], 1))
        x3 = self.merge[1](torch.cat([up(x4, x3), x3], 1))
        x4 = self.merge[2](torch.cat([self.down[0](x3), x4], 1))
        x5 = self.merge[3](torch.cat([self.down[1](x4), x5], 1))
        found = []
        for at, x in enumerate((x3, x4, x5)):
            y = self.head[at](x)
            cls, box = y.split([self.classes, 32], 1)
            if not self.decode:
                found.append(torch.cat([cls.sigmoid(), box], 1).flatten(2))
                continue
            b, _, h, w = y.shape
            stride = 8 * 2**at
            cls = cls.sigmoid().reshape(b, self.classes, h * w)
            box = F.softmax(box.permute(0, 2, 3, 1).reshape(-1, 8), dim=1)
            box = F.linear(box, self.project.unsqueeze(0)).reshape(b, h * w, 4)
            ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            centre = torch.stack([(xs.flatten() + 0.5) * stride, (ys.flatten() + 0.5) * stride], -1)
            found.append((cls, torch.cat([centre - box[..., :2] * stride, centre + box[..., 2:] * stride], -1)))
        if not self.decode:
            return torch.cat(found, 2).permute(0, 2, 1)
        return torch.cat([cls for cls, _ in found], -1), torch.cat([box for _, box in found], 1)


class RetinaFace(nn.Module):
    """A pyramid, context modules, and heads of faces, boxes and landmarks."""

    def __init__(self):
        super().__init__()
        act = lambda: nn.LeakyReLU(0.1)
        self.body = Light([16, 24, 32], act)
        self.flat = nn.ModuleList(conv(c, 16, act=act) for c in (16, 24, 32))
        self.merge = nn.ModuleList(conv(16, 16, 3, act=act) for _ in range(2))
        self.three = nn.ModuleList(conv(16, 8, 3, act=None) for _ in range(3))
        self.five = nn.ModuleList(conv(16, 4, 3, act=act) for _ in range(3))
        self.five_on = nn.ModuleList(conv(4, 4, 3, act=None) for _ in range(3))
        self.seven = nn.ModuleList(nn.Sequential(conv(4, 4, 3, act=act), conv(4, 4, 3, act=None)) for _ in range(3))
        self.heads = nn.ModuleList(nn.ModuleList(nn.Conv2d(16, 2 * n, 1) for _ in range(3)) for n in (4, 2, 10))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b, c = (flat(x) for flat, x in zip(self.flat, self.body(x)))
        b = self.merge[1](b + F.interpolate(c, size=[b.size(2), b.size(3)], mode="nearest"))
        a = self.merge[0](a + F.interpolate(b, size=[a.size(2), a.size(3)], mode="nearest"))
        found = []
        for at, x in enumerate((a, b, c)):
            five = self.five[at](x)
            found.append(F.relu(torch.cat([self.three[at](x), self.five_on[at](five), self.seven[at](five)], 1)))
        outs = []
        for heads, n in zip(self.heads, (4, 2, 10)):
            rows = [head(x).permute(0, 2, 3, 1).contiguous().view(x.shape[0], -1, n) for head, x in zip(heads, found)]
            outs.append(torch.cat(rows, 1))
        return outs[0], F.softmax(outs[1], dim=-1), outs[2]


class BlazeBlock(nn.Module):
    def __init__(self, i: int, o: int, s: int = 1):
        super().__init__()
        self.s, self.more = s, o - i
        self.convs = nn.Sequential(nn.Conv2d(i, i, 3 if s == 2 else 5, s, 0 if s == 2 else 2, groups=i), nn.Conv2d(i, o, 1))

    def forward(self, x: Tensor) -> Tensor:
        h = x
        if self.s == 2:
            h, x = F.pad(x, (0, 2, 0, 2)), F.max_pool2d(x, 2, 2)
        if self.more:
            x = F.pad(x, (0, 0, 0, 0, 0, self.more))
        return F.relu(self.convs(h) + x)


class BlazeFace(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 5, 2)
        blocks = lambda *sizes: nn.Sequential(*(BlazeBlock(*size) for size in sizes))
        self.a = blocks((24, 24), (24, 28), (28, 32, 2), (32, 36), (36, 42), (42, 48, 2), (48, 56), (56, 64), (64, 88))
        self.b = blocks((88, 96, 2), (96, 96))
        self.cls = nn.ModuleList([nn.Conv2d(88, 2, 1), nn.Conv2d(96, 6, 1)])
        self.box = nn.ModuleList([nn.Conv2d(88, 32, 1), nn.Conv2d(96, 96, 1)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.a(F.relu(self.stem(F.pad(x, (1, 2, 1, 2)))))
        levels, b = [x, self.b(x)], x.shape[0]
        rows = lambda heads, n: torch.cat([h(x).permute(0, 2, 3, 1).reshape(b, -1, n) for h, x in zip(heads, levels)], 1)
        return rows(self.box, 16), rows(self.cls, 1).clamp(-100, 100).sigmoid()


class MoveNet(nn.Module):
    """The person in the middle, and each joint near where a regression from there says."""

    JOINTS, SIDE = 17, 24

    def __init__(self):
        super().__init__()
        act = nn.ReLU6
        self.body = nn.Sequential(conv(3, 16, 3, 2, act=act), separable(16, 24, 2, act=act), separable(24, 24, act=act))
        self.heads = nn.ModuleList(nn.Sequential(separable(24, 24), nn.Conv2d(24, n, 1)) for n in (1, 17, 34, 34))
        y, x = torch.meshgrid(torch.arange(self.SIDE).float(), torch.arange(self.SIDE).float(), indexing="ij")
        self.register_buffer("y", y)
        self.register_buffer("x", x)
        self.register_buffer("near", 1 / (1.8 + ((y - 11.5) ** 2 + (x - 11.5) ** 2).sqrt()))

    def forward(self, image: Tensor) -> Tensor:
        x = self.body(image)
        b = x.shape[0]
        centre, heat, regress, offset = (head(x) for head in self.heads)
        best = (centre.sigmoid() * self.near).flatten(1).argmax(1)
        cy, cx = best // self.SIDE, best % self.SIDE
        regress = regress.flatten(2).gather(2, best[:, None, None].expand(b, 34, 1)).reshape(b, self.JOINTS, 2)
        ry, rx = regress[..., 0] + cy[:, None].float(), regress[..., 1] + cx[:, None].float()
        far = ((self.y - ry[..., None, None]) ** 2 + (self.x - rx[..., None, None]) ** 2).sqrt() + 1.8
        scores = (heat.sigmoid() / far).flatten(2)
        found = scores.argmax(2, keepdim=True)
        dy, dx = offset.view(b, self.JOINTS, 2, -1).gather(3, found[:, :, None].expand(b, self.JOINTS, 2, 1)).squeeze(3).unbind(2)
        y, x = (found // self.SIDE).squeeze(2).float() + dy, (found % self.SIDE).squeeze(2).float() + dx
        score = heat.sigmoid().flatten(2).gather(2, found).squeeze(2)
        return torch.stack([y / self.SIDE, x / self.SIDE, score], 2)[:, None]


# Text, sound and time.


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        act = nn.ReLU
        self.convs = nn.Sequential(conv(1, 16, 3, act=act), nn.MaxPool2d(2), conv(16, 24, 3, act=act), nn.MaxPool2d(2),
                                   conv(24, 32, 3, act=act), nn.MaxPool2d((2, 2), (2, 1), (0, 1)), conv(32, 32, 3, act=act),
                                   nn.MaxPool2d((2, 2), (2, 1), (0, 1)), nn.Conv2d(32, 32, 2), nn.ReLU())
        self.first, self.mid = nn.LSTM(32, 24, bidirectional=True), nn.Linear(48, 32)
        self.second, self.out = nn.LSTM(32, 24, bidirectional=True), nn.Linear(48, 20)

    def forward(self, x: Tensor) -> Tensor:
        x = self.convs(x).squeeze(2).permute(2, 0, 1)
        x = self.first(x)[0]
        t, b, h = x.shape
        x = self.mid(x.view(t * b, h)).view(t, b, -1)
        return F.log_softmax(self.out(self.second(x)[0]), dim=2)


class PpOcr(nn.Module):
    """Text lines: separable convolutions with gates, two layers of attention, and the shares of the characters."""

    def __init__(self):
        super().__init__()
        act = nn.Hardswish
        self.convs = nn.Sequential(conv(3, 16, 3, 2, act=act), separable(16, 24, act=act), separable(24, 32, (2, 1), act=act),
                                   separable(32, 48, (2, 1), 5, act=act))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(48, 12, 1), nn.ReLU(), nn.Conv2d(12, 48, 1),
                                  nn.Hardsigmoid())
        self.narrow, self.wide = conv(48, 24, 3), conv(24, 48)
        self.blocks, self.norm = nn.Sequential(Block(24, act=nn.SiLU), Block(24, act=nn.SiLU)), nn.LayerNorm(24)
        self.merge, self.out = conv(96, 24, 3), nn.Linear(24, 40)

    def forward(self, x: Tensor) -> Tensor:
        x = self.convs(x)
        x = F.avg_pool2d(x * self.gate(x), (3, 2))
        z = self.narrow(x)
        b, c, h, w = z.shape
        z = self.norm(self.blocks(z.flatten(2).permute(0, 2, 1))).reshape(b, h, w, c).permute(0, 3, 1, 2)
        x = self.merge(torch.cat((x, self.wide(z)), 1))
        return F.softmax(self.out(x.squeeze(2).permute(0, 2, 1)), dim=2)


class DsCnn(nn.Module):
    """Keywords in 49 frames of 10 coefficients."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.ZeroPad2d((1, 1, 4, 5)), nn.Conv2d(1, 64, (10, 4), 2), nn.BatchNorm2d(64), nn.ReLU())
        self.body = nn.Sequential(*(separable(64, 64) for _ in range(4)), nn.AvgPool2d((25, 5)))
        self.out = nn.Linear(64, 12)

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.out(torch.flatten(self.body(self.stem(x)), 1)), dim=1)


class Tcn(nn.Module):
    """Dilated causal convolutions: padded on both sides and cut, as in the paper's code."""

    def __init__(self):
        super().__init__()
        sizes = [8, 16, 16, 24]
        make = lambda i, o, d: nn.utils.parametrizations.weight_norm(nn.Conv1d(i, o, 3, padding=2 * d, dilation=d))
        self.convs = nn.ModuleList(nn.ModuleList([make(i, o, 2**at), make(o, o, 2**at)])
                                   for at, (i, o) in enumerate(zip(sizes, sizes[1:])))
        self.skips = nn.ModuleList(nn.Conv1d(i, o, 1) if i != o else nn.Identity() for i, o in zip(sizes, sizes[1:]))
        self.out = nn.Linear(24, 6)

    def forward(self, x: Tensor) -> Tensor:
        for at, convs in enumerate(self.convs):
            y = x
            for one in convs:
                y = F.relu(one(y)[:, :, : -2 * 2**at].contiguous())
            x = F.relu(y + self.skips[at](x))
        return self.out(x[:, :, -1])


class Vad(nn.Module):
    """A voice detector: a Fourier transform as a convolution, an encoder, and an LSTM whose state comes in and goes out."""

    def __init__(self, cell: bool):
        super().__init__()
        n, self.cell = 64, cell
        angles = 2 * torch.pi * torch.arange(n // 2 + 1)[:, None] * torch.arange(n)[None] / n
        basis = torch.cat([torch.cos(angles), -torch.sin(angles)]) * torch.hann_window(n)
        self.register_buffer("basis", basis[:, None])
        sizes, strides = [33, 32, 16, 32], [1, 2, 2]
        self.encoder = nn.Sequential(*(part for i, o, s in zip(sizes, sizes[1:], strides)
                                       for part in (nn.Conv1d(i, o, 3, s, 1), nn.ReLU())))
        self.lstm = nn.LSTMCell(32, 32) if cell else nn.LSTM(32, 32, batch_first=True)
        self.out = nn.Sequential(nn.Dropout(0.1), nn.ReLU(), nn.Conv1d(32, 1, 1), nn.Sigmoid())

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        spectrum = F.conv1d(F.pad(x[:, None], (0, 32), mode="reflect"), self.basis, stride=16)
        real, imaginary = spectrum[:, :33], spectrum[:, 33:]
        x = self.encoder(torch.sqrt(real**2 + imaginary**2))
        if self.cell:
            h, c = self.lstm(x.mean(-1), (h[0], c[0]))
            return self.out(h[..., None]).mean(2), h[None], c[None]
        y, (h, c) = self.lstm(x.permute(0, 2, 1), (h, c))
        return self.out(y.permute(0, 2, 1)).mean(2), h, c


# Images from images.


class Espcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 32, 5, 1, 2), nn.Tanh(), nn.Conv2d(32, 16, 3, 1, 1), nn.Tanh(),
                                  nn.Conv2d(16, 9, 3, 1, 1), nn.PixelShuffle(3), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class SrGan(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 9, 1, 4), nn.PReLU())
        block = lambda: nn.Sequential(conv(16, 16, 3, act=None), nn.PReLU(), conv(16, 16, 3, act=None))
        self.blocks, self.last = nn.ModuleList(block() for _ in range(4)), conv(16, 16, 3, act=None)
        larger = lambda: nn.Sequential(nn.Conv2d(16, 64, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU())
        self.up = nn.Sequential(larger(), larger())
        self.out = nn.Conv2d(16, 3, 9, 1, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return (torch.tanh(self.out(self.up(first + self.last(y)))) + 1) / 2


def image(*size: int) -> list[tuple[int, ...]]:
    return [(1, 3, *(size if len(size) == 2 else size * 2))]


def of_timm(name: str, size: int, **options) -> Architecture:
    return Architecture(lambda: timm.create_model(name, num_classes=10, **options), image(size))


def of_torchvision(name: str, size: int) -> Architecture:
    return Architecture(lambda: getattr(torchvision.models, name)(weights=None, num_classes=10), image(size))


def segmentation(name: str, size: int) -> Architecture:
    net = lambda: getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=5)
    return Architecture(lambda: Selected(net(), lambda found: found["out"]), image(size))


def c3k2(i: int, o: int) -> nn.Module:
    return C2f(i, o, inner=lambda c: C3(c, c, 2))


ARCHITECTURES: dict[str, Architecture] = {
    "mobilenet_v1": of_timm("mobilenetv1_100", 96),
    "mobilenet_v2": of_timm("mobilenetv2_050", 96),
    "mobilenet_v3": of_torchvision("mobilenet_v3_small", 96),
    "mobilenet_v4": of_timm("mobilenetv4_conv_small_050", 96),
    "mobilenet_v4_hybrid": of_timm("mobilenetv4_hybrid_medium", 128),
    "efficientnet": of_timm("efficientnet_b0", 96),
    "efficientnet_v2": of_timm("tf_efficientnetv2_b0", 96),
    "efficientvit_mit": of_timm("efficientvit_b0", 96),
    "efficientvit_msra": of_timm("efficientvit_m0", 224),
    "fastvit": of_timm("fastvit_t8", 128),
    "mobilevit": of_timm("mobilevit_xxs", 128),
    "mobilevit_v2": of_timm("mobilevitv2_050", 128),
    "efficientformer": of_timm("efficientformer_l1", 224),
    "efficientformer_v2": of_timm("efficientformerv2_s0", 224),
    "convnext": of_timm("convnext_atto", 96),
    "repvgg": of_timm("repvgg_a0", 96),
    "ghostnet": of_timm("ghostnet_050", 96),
    "shufflenet": of_torchvision("shufflenet_v2_x0_5", 96),
    "regnet": of_timm("regnety_002", 96),
    "resnext": Architecture(lambda: timm.models.ResNet(timm.models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10,
                                                       cardinality=32, base_width=4), image(96)),
    "deit": of_timm("deit_tiny_patch16_224", 64, img_size=64, depth=3),
    "swin": of_timm("swin_tiny_patch4_window7_224", 112, img_size=112, embed_dim=24, depths=(2, 2), num_heads=(2, 4)),
    "tinyvit": of_timm("tiny_vit_5m_224", 224, depths=(1, 1, 2, 1)),
    "edgenext": of_timm("edgenext_xx_small", 128),
    "repvit": of_timm("repvit_m0_9", 96),
    "unet": Architecture(lambda: UNet(False), image(64, 48)),
    "unet_bilinear": Architecture(lambda: UNet(True), image(72, 56)),
    "deeplab_v3": segmentation("deeplabv3_mobilenet_v3_large", 96),
    "lraspp": segmentation("lraspp_mobilenet_v3_large", 96),
    "bisenet": Architecture(BiSeNet, image(96)),
    "segformer": Architecture(SegFormer, image(64)),
    "yolo_v5": Architecture(YoloAnchors, image(96)),
    "yolo_v8": Architecture(lambda: Yolo(Pyramid(C2f)), image(96)),
    "yolo_v10": Architecture(lambda: Yolo(Pyramid(C2f, attend=True), light=True, count=20), image(96)),
    "yolo_11": Architecture(lambda: Yolo(Pyramid(c3k2, attend=True), light=True), image(96)),
    "yolo_26": Architecture(lambda: Yolo(Pyramid(c3k2, attend=True), bins=1, light=True, count=20), image(96)),
    "yolo_26_classes": Architecture(YoloClasses, image(96)),
    "rt_detr": Architecture(lambda: RtDetr(False), image(96)),
    "rt_detr_look_up": Architecture(lambda: RtDetr(True), image(96)),
    "detr": Architecture(Detr, image(96)),
    "ssdlite": Architecture(SsdHead, image(320)),
    "nanodet": Architecture(lambda: NanoDet(False), image(96)),
    "picodet": Architecture(lambda: NanoDet(True), image(96)),
    "retinaface": Architecture(RetinaFace, image(96)),
    "blazeface": Architecture(BlazeFace, image(128)),
    "movenet": Architecture(MoveNet, image(96)),
    "crnn": Architecture(Crnn, [(1, 1, 32, 64)]),
    "pp_ocr": Architecture(PpOcr, image(24, 80)),
    "ds_cnn": Architecture(DsCnn, [(1, 1, 49, 10)]),
    "tcn": Architecture(Tcn, [(1, 8, 64)]),
    "vad_cell": Architecture(lambda: Vad(True), [(1, 512), (1, 1, 32), (1, 1, 32)]),
    "vad_lstm": Architecture(lambda: Vad(False), [(1, 512), (1, 1, 32), (1, 1, 32)]),
    "dpt": Architecture(Dpt, image(64)),
    "espcn": Architecture(Espcn, [(1, 1, 24, 32)]),
    "srgan": Architecture(SrGan, image(24, 16)),
}
